"""``fslab name``, ``fslab note``, ``fslab delete``: name, annotate and delete campaigns."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from fslab.cli.common import CampaignArgument, NeededCampaignArgument, StoreOption, YesOption, open_store, say
from fslab.errors import BusyError, StoreError, StoreLostError, UsageError
from fslab.units import counted

if TYPE_CHECKING:
    from fslab.store.campaign import CampaignEntry
    from fslab.store.store import Store


def name(campaign: NeededCampaignArgument, name: str, *, store: StoreOption = None) -> None:
    """Give a campaign a name. Every command takes it instead of the id.

    Parameters:
        name: The new name; '' removes the name.
    """
    with open_store(store) as opened:
        found = opened.name_campaign(campaign, name or None)
    say(f"{found} is called '{name}'" if name else f"{found} has no name")


def note(campaign: CampaignArgument = "last", text: str | None = None, *, store: StoreOption = None) -> None:
    """Store a note with a campaign, or show it.

    Parameters:
        text: The new note; '' removes the note; default: show the note.
    """
    with open_store(store) as opened:
        if text is not None:
            opened.note_campaign(campaign, text or None)
        found = opened.campaign(campaign)
    say(found.note or f"{found.id} has no note")


def delete(
    campaigns: list[str],
    *,
    yes: YesOption = False,
    force: bool = False,
    store: StoreOption = None,
) -> None:
    """Delete campaigns with all their trials. This cannot be undone; make a copy first: fslab store copy.

    A campaign that runs is not deleted. Whether a machine of a fleet still runs one, or one was copied while it ran,
    cannot be checked: the store says so until it ends. --force deletes it; in a fleet it also ends the measurement.

    Parameters:
        campaigns: Complete ids or names; not 'last', and no beginnings of ids.
        force: Also those that run elsewhere according to the store.
    """
    with open_store(store) as opened:
        found = {}  # by id: two words may mean one campaign
        for wanted in campaigns:
            entry = opened.entry(wanted)  # not the campaign: one that cannot be read can be deleted, too
            if wanted not in {entry.id, entry.name}:
                raise UsageError(f"'{wanted}' is not a complete id or name", hint=f"fslab delete {entry.id}")
            _check_idle(entry, opened, force=force)
            found[entry.id] = entry
        for entry in found.values():
            what = f"{entry.id}{f' ({entry.name})' if entry.name else ''}: {entry.study_title}"
            say(f"{what}, {counted(opened.count(entry.id), 'trial')}", err=True)
        if not yes and not (sys.stdin.isatty() and typer.confirm("Delete?", err=True)):
            raise UsageError("nothing was deleted", hint="to delete without being asked: --yes")
        for campaign_id in found:
            _check_idle(opened.entry(campaign_id), opened, force=force)  # resumed during the question?
            opened.delete_campaign(campaign_id)
    say(f"deleted {counted(len(found), 'campaign')}")


def _check_idle(entry: CampaignEntry, store: Store, *, force: bool) -> None:
    """Raise BusyError if the campaign runs: here, or, without ``force``, perhaps elsewhere."""
    from fslab.campaign.liveness import is_running

    if is_running(entry.id, store):
        raise BusyError(f"campaign {entry.id} is running", hint="stop it first, with Ctrl-C")
    if not force and _may_run(entry, store):
        raise BusyError(
            f"campaign {entry.id} is running on another machine, or another user runs it",
            hint="if that is no longer so: --force; in a fleet it also ends the measurement",
        )


def _may_run(entry: CampaignEntry, store: Store) -> bool:
    """Return whether the campaign may run elsewhere. One that cannot be read does not say where it was started."""
    from fslab.campaign.liveness import as_it_is
    from fslab.store.campaign import CampaignStatus

    if entry.status != CampaignStatus.RUNNING:
        return False
    try:
        return as_it_is(store.campaign(entry.id), store).status is CampaignStatus.RUNNING
    except StoreLostError:
        raise
    except StoreError:
        return True
