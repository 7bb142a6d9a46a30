"""Undo what a crash left behind: processes, mounts, loop devices, images, directories, settings.

Touches only what a journal names, and processes that carry the campaign's mark. Safe to run twice.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from fslab.campaign.journal import CampaignJournal, Entry, leftover
from fslab.errors import BusyError, FslabError
from fslab.machine import tuning
from fslab.system import loops, mounts, proc

log = logging.getLogger("fslab.undo")
END_DEADLINE_S = 5.0


def clean(campaign: str) -> list[Entry]:
    """Undo everything that is pending of one campaign; returns what was undone. BusyError if it runs."""
    with CampaignJournal(campaign) as journal:
        return undo_pending(journal)


def clean_all() -> tuple[list[tuple[str, Entry]], list[FslabError]]:
    """Undo what ended campaigns left; a running one is left alone. Returns what was undone and what failed."""
    done: list[tuple[str, Entry]] = []
    failures: list[FslabError] = []
    for campaign in leftover():
        try:
            done.extend((campaign, entry) for entry in clean(campaign))
        except BusyError:
            log.info("campaign %s is running: left alone", campaign)
        except FslabError as error:
            failures.append(error)
    return done, failures


def undo_pending(journal: CampaignJournal) -> list[Entry]:
    """End the campaign's processes, then undo its entries, newest first."""
    end_marked(journal.campaign)
    done = []
    for entry in reversed(journal.pending()):
        if entry.kind not in UNDO:
            raise FslabError(
                f"do not know how to undo '{entry.kind}' of {entry.target}", where=str(journal.path),
                hint="a newer fslab wrote this journal: clean with that one",
            )  # fmt: skip
        UNDO[entry.kind](entry.target)
        journal.undone(entry.id)
        done.append(entry)
    return done


def end_marked(campaign: str) -> None:
    """SIGKILL the tools that the campaign started and that survived it, and wait until they are gone."""
    deadline = time.monotonic() + END_DEADLINE_S
    while (processes := proc.marked_processes(campaign)) and time.monotonic() < deadline:
        for pid in processes:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)


def _unmount(target: str) -> None:
    path = Path(target)
    mounts.unmount(path)
    if path.is_dir():
        path.rmdir()


def _remove_directory(target: str) -> None:
    path = Path(target)
    if path.is_dir():
        path.rmdir()


def _remove_tree(target: str) -> None:
    path = Path(target)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _put_back(target: str) -> None:
    path, _, found = target.partition("=")
    tuning.put_back(Path(path), found)


UNDO: Mapping[str, Callable[[str], None]] = {
    "mount": _unmount,
    "loop": lambda target: loops.detach(Path(target)),
    "image": lambda target: Path(target).unlink(missing_ok=True),
    "directory": _remove_directory,
    "tree": _remove_tree,
    "tuning": _put_back,
}
