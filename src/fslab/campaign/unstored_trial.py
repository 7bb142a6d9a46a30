"""Keeps a trial that could not be stored in a file of the user's own, until the campaign is resumed.

A campaign ends when its store is lost, so there is at most one such trial.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

from fslab import untrusted_text
from fslab.errors import StoreLostError
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.system import files, paths, untrusted_files
from fslab.trial_record import TrialRecord

LIMIT_BYTES = 1 << 30


def path_of(campaign_id: str) -> Path:
    """Return the path of the file for a campaign's trial."""
    return paths.state() / "unstored" / f"{campaign_id}.json"


def keep(record: TrialRecord, error: StoreLostError) -> StoreLostError:
    """Keep the trial. Returns the error with the file's path in its hint; unchanged if the trial cannot be kept."""
    path = path_of(record.key.campaign)
    try:
        files.make_directories(path.parent, 0o700)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        untrusted_files.write_new(path, record.model_dump_json().encode())
    except (OSError, ValueError):  # ValueError: a text that JSON cannot hold
        return error
    hint = f"{error.hint}; this also stores the last trial, which is kept in {path}"
    return StoreLostError(error.what, where=error.where, hint=hint)


def store_kept(campaign: Campaign, store: Store, note: Callable[[str], object]) -> None:
    """Store the kept trial, if there is one and it belongs to this campaign. Any other file is noted and stays."""
    path = path_of(campaign.id)
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
