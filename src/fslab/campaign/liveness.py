"""What became of a campaign that ended unexpectedly: its actual status, and the trial that could not be stored.

One that is stored as running but has no process was interrupted. A campaign ends when its store is lost, so there is at
most one unstored trial. It is kept in a file of the user's own until the campaign is resumed.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from fslab import untrusted_text
from fslab.campaign import undo_journal
from fslab.errors import StoreLostError
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.system import files, paths, untrusted_files
from fslab.trial_record import TrialRecord

LIMIT_BYTES = 1 << 30


def is_running(campaign: str, store: Store) -> bool:
    """Return whether a process of this machine runs the campaign: by its journal, if that is where ours are, or by its
    lock in the store."""
    return undo_journal.is_running(campaign) or store.is_running(campaign)


def as_it_is(campaign: Campaign, store: Store) -> Campaign:
    """Return the campaign; as ``interrupted`` if it is stored as ``running`` but no process runs it.

    Only campaigns of this user on this machine can be checked, and those that a fleet has given up or cancelled, whose
    machines can store nothing more. Others keep the stored status.
    """
    if campaign.status is not CampaignStatus.RUNNING:
        return campaign
    if not store.is_over_in_fleet(campaign.id) and (not _ours(campaign) or is_running(campaign.id, store)):
        return campaign
    # It may have ended since it was read: its process stores the status before it releases the lock.
    status = store.status(campaign.id)
    killed = status is CampaignStatus.RUNNING
    return campaign.model_copy(update={"status": CampaignStatus.INTERRUPTED if killed else status})


def _ours(campaign: Campaign) -> bool:
    machine, user = campaign.machine.get("hostname"), campaign.settings.user_id
    return machine in {None, os.uname().nodename} and user in {None, os.geteuid()}


def unstored_path(campaign_id: str) -> Path:
    """Return the path of the file for a campaign's unstored trial."""
    return paths.state() / "unstored" / f"{campaign_id}.json"


def keep_unstored(record: TrialRecord, error: StoreLostError) -> StoreLostError:
    """Keep the trial. Returns the error with the file's path in its hint; unchanged if the trial cannot be kept."""
    path = unstored_path(record.key.campaign)
    try:
        files.make_directories(path.parent, 0o700)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        untrusted_files.write_new(path, record.model_dump_json().encode())
    except (OSError, ValueError):  # ValueError: a text that JSON cannot hold
        return error
    hint = f"{error.hint}; this also stores the last trial, which is kept in {path}"
    return StoreLostError(error.what, where=error.where, hint=hint)


def store_unstored(campaign: Campaign, store: Store, note: Callable[[str], object]) -> None:
    """Store the kept trial, if there is one and it belongs to this campaign. Any other file is noted and stays."""
    path = unstored_path(campaign.id)
    try:
        found = untrusted_text.json_of(untrusted_files.read(path, limit_bytes=LIMIT_BYTES))
        record = TrialRecord.model_validate(found)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        note(f"the trial kept in {path} cannot be read and was not stored: {str(error)[:200]}")
        return
    if record.key.campaign != campaign.id or record.cell not in campaign.cells:
        note(f"{path} belongs to another campaign and was not stored")
        return
    if (record.cell.id, record.key.block) not in store.finished(campaign.id):
        store.add_trial(record)
        note(f"stored the trial that was kept in {path}")
    path.unlink()
