"""Finds the campaign that a user means: by its id, its name, the beginning of its id, or its age (``last``). Pure."""

import re
from collections.abc import Mapping, Sequence

from fslab.errors import AmbiguousNameError, NotStoredError, StoreError, nearest

LAST = "last"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._+-]{0,127}")
_BACK = re.compile(r"last(?:~(\d{1,6}))?")


def check_name(name: str, campaign_id: str, named: Mapping[str, str], place: str) -> None:
    """Raise StoreError if the name could be mistaken for an id, or if another campaign has it.

    ``named``: the ids of the store's campaigns that have names, by name. ``place``: the store, for messages.
    """
    if not _NAME.fullmatch(name) or _BACK.fullmatch(name):
        what = f"invalid name '{name}': it must start with a letter; allowed: letters, digits, '.', '_', '+', '-'"
        raise StoreError(what, where=place)
    if (other := named.get(name, campaign_id)) != campaign_id:
        hint = f"choose another name, or remove that one: fslab name {other} ''"
        raise StoreError(f"campaign '{other}' has the name '{name}' already", where=place, hint=hint)


def resolved(wanted: str, ids: Sequence[str], named: Mapping[str, str], place: str) -> str:
    """Return the id of the campaign that ``wanted`` means. ``ids``: of the store's campaigns, oldest first.

    NotStoredError if there is none, AmbiguousNameError if ``wanted`` is the beginning of several ids.
    """
    if not ids:
        raise NotStoredError(
            "the store has no campaign yet", where=place, hint="run a study: fslab run quick"
        )
    if wanted in ids:
        return wanted
    if wanted in named:
        return named[wanted]
    if back := _BACK.fullmatch(wanted):
        steps = int(back[1] or 0)
        if steps >= len(ids):
            what = f"no campaign '{wanted}': the store has {len(ids)} campaign{'s' * (len(ids) != 1)}"
            raise NotStoredError(what, where=place, hint="fslab results --list lists them")
        return ids[-1 - steps]
    fitting = [known for known in ids if wanted and known.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        hint = f"write more of the id: {', '.join(fitting)}"
        raise AmbiguousNameError(f"'{wanted}' matches {len(fitting)} campaigns", where=place, hint=hint)
    raise NotStoredError(f"no campaign '{wanted}'", where=place, hint=nearest(wanted, [*ids, *named]))
