"""How near a campaign is to its publication: processors, memory, medium, amounts, kernel. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fslab.cell import Frozen
from fslab.units import parse_size

# The five that decide whether figures can be compared with the publication's; always shown, in this order.
ROWS = ("processors", "memory", "medium", "amounts", "kernel")
_SAME = frozenset({"processors", "memory", "medium", "amounts"})
_STATED = frozenset({"medium", "amounts"})
_MEMORY = 2.0  # the factor within which a memory is near another one
# The kinds of disks, with the words of publications and the names of profiles and media.
_KINDS = {
    "NVMe": r"nvme", "SSD": r"ssd|solid", "hard disk": r"hdd|hard disk|sata disks?|rpm", "loop": r"\bloop",
    "RAM": r"\bram\b|ram disk",
}  # fmt: skip


class Condition(Frozen):
    """A condition of a measurement, of the publication and here. ``near``: whether they are alike; None: unknown."""

    name: str
    theirs: str
    here: str
    near: bool | None = None

    @property
    def near_word(self) -> str:
        return {True: "near", False: "not near", None: "unknown"}[self.near]


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """Where a campaign measured. ``texts``: conditions in words, by name. ``media``: descriptions of its disks.

    ``slowed``: a modelled disk runs at another speed than its model. ``scaled``: amounts are not the publication's.
    """

    texts: Mapping[str, str]
    cpus: int | None = None
    memory_bytes: int | None = None
    kernel: str | None = None
    media: Sequence[str] = ()
    slowed: bool = False
    scaled: bool = False


def conditions_of(theirs: Mapping[str, str], here: Situation) -> tuple[Condition, ...]:
    """Return the publication's conditions beside ours: the five of ``ROWS``, and others if they differ."""
    known = [name for name in (*ROWS, *(each for each in theirs if each not in ROWS)) if name in theirs]
    return tuple(
        Condition(name=name, theirs=theirs[name], here=here.texts[name], near=_near(name, theirs[name], here))
        for name in known
        if name in here.texts and (name in ROWS or here.texts[name] != theirs[name])
    )


def same_machine(conditions: Sequence[Condition]) -> bool:
    """Return whether machine and amounts are the publication's, as far as it states them; its disks it must state."""
    found = {one.name: one.near for one in conditions if one.name in _SAME}
    return found.keys() >= _STATED and all(found.values())


def _near(name: str, theirs: str, here: Situation) -> bool | None:
    match name:
        case "processors":
            count = re.search(r"\d+", theirs)
            return here.cpus >= int(count[0]) if count and here.cpus else None
        case "memory":
            return _near_memory(theirs, here.memory_bytes)
        case "medium":
            kinds = [_kinds(medium) for medium in here.media]
            return None if not all(kinds) else not here.slowed and set().union(*kinds) == _kinds(theirs)
        case "amounts":
            return not here.scaled
        case "kernel":
            return None if here.kernel is None else _series(theirs) == _series(here.kernel)
        case _:
            return theirs == here.texts.get(name)


def _near_memory(theirs: str, here_bytes: int | None) -> bool | None:
    number = re.match(r"([\d.]+)\s*([KMGT])i?B", theirs)
    if number is None or here_bytes is None:
        return None
    ratio = here_bytes / parse_size(f"{number[1]}{number[2].lower()}")
    return 1 / _MEMORY <= ratio <= _MEMORY


def _kinds(text: str) -> set[str]:
    found = {kind for kind, words in _KINDS.items() if re.search(words, text, re.IGNORECASE)}
    return found - {"SSD"} if "NVMe" in found else found


def _series(kernel: str) -> list[str]:
    return re.findall(r"\d+", kernel)[:2]
