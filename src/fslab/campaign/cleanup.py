"""Removes what a crash left behind: processes, mounts, loop devices, images, directories, settings.

Touches only what a journal names, and processes that carry the campaign's mark. Can be run twice.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fslab.campaign.journal import CampaignJournal, JournalEntry, leftover
from fslab.errors import BusyError, FslabError, UnsafeError
from fslab.machine import tuning
from fslab.storage import signatures
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.layouts import volume_name
from fslab.system import disk, loops, mounts, proc, trees

log = logging.getLogger("fslab.undo")
END_DEADLINE_S = 5.0


def clean(campaign: str) -> list[JournalEntry]:
    """Undo all pending entries of one campaign and return them. BusyError if the campaign is running."""
    with CampaignJournal(campaign) as journal:
        return undo_pending(journal)


def clean_all() -> tuple[list[tuple[str, JournalEntry]], list[FslabError]]:
    """Undo what ended campaigns left; skip running campaigns. Returns what was undone and what failed."""
    done: list[tuple[str, JournalEntry]] = []
    failures: list[FslabError] = []
    for campaign in leftover():
        try:
            done.extend((campaign, entry) for entry in clean(campaign))
        except BusyError:
            log.info("campaign %s is running: not cleaned", campaign)
        except FslabError as error:
            failures.append(error)
        except Exception as error:
            log.debug("campaign %s cannot be cleaned", campaign, exc_info=error)
            what = str(error) if isinstance(error, OSError) else repr(error)
            failures.append(FslabError(what, where=campaign, hint="fix this, then run: fslab clean"))
    return done, failures


def undo_pending(journal: CampaignJournal) -> list[JournalEntry]:
    """End the campaign's processes, undo its entries, newest first, and return those that were undone.

    A failure does not stop the others: the first one is raised after all entries were tried. Only an entry of an
    unknown kind raises at once.
    """
    end_marked(journal.campaign)
    _abort_disks(journal)
    done: list[JournalEntry] = []
    failures: list[Exception] = []
    for entry in reversed(journal.pending()):
        if entry.kind not in {*_ON_DEVICES, *UNDO}:
            raise FslabError(
                f"unknown kind of entry '{entry.kind}' ({entry.target})", where=str(journal.path),
                hint="a newer fslab wrote this journal: run its fslab clean",
            )  # fmt: skip
        try:
            _check_ours(journal.campaign, entry)
            # A reboot resets settings and timers by itself.
            if entry.kind in _ON_DEVICES:
                _ON_DEVICES[entry.kind](entry.target, entry.nodes())
            elif entry.kind not in {"tuning", tuning.TIMER} or not entry.rebooted:
                UNDO[entry.kind](entry.target)
            journal.undone(entry.id)
        except Exception as error:  # whatever it is: it must not keep the others
            failures.append(error)
        else:
            done.append(entry)
    if failures:
        raise failures[0]
    return done


def _abort_disks(journal: CampaignJournal) -> None:
    """Abort the connections of virtual disks first: after that, nothing on these disks waits for a dead server.

    Errors are ignored here. The disk's own entry tries again and reports the error.
    """
    for entry in journal.pending():
        if entry.kind == "disk":
            with contextlib.suppress(FslabError, OSError):
                _check_ours(journal.campaign, entry)
                disk.clean(Path(entry.target))


def _check_ours(campaign: str, entry: JournalEntry) -> None:
    """Raise UnsafeError for an entry that this campaign cannot have made: names contain the campaign's id."""
    if entry.kind == "tuning":
        ours = tuning.is_setting(Path(entry.target.partition("=")[0]))
    elif entry.kind == tuning.TIMER:
        ours = tuning.is_timer(entry.target)
    elif entry.kind in _LAYOUTS:
        ours = entry.target == volume_name(campaign)
    elif entry.kind == signatures.KIND:
        ours = entry.target.partition(" ")[0] == volume_name(campaign)
    else:
        parts = Path(entry.target).parts
        ours = ".." not in parts and any(
            part == campaign or part.startswith(f"fslab-{campaign}-") for part in parts
        )
    if not ours:
        raise UnsafeError(
            f"{entry.kind} does not belong to this campaign and was not removed", where=entry.target
        )


def end_marked(campaign: str) -> None:
    """SIGKILL the campaign's processes that still run, and wait until they are gone, at most ``END_DEADLINE_S``."""
    deadline = time.monotonic() + END_DEADLINE_S
    while proc.kill_marked(campaign) and time.monotonic() < deadline:
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
        trees.remove(path)


def _put_back(target: str) -> None:
    path, _, found = target.partition("=")
    if Path(path).exists():  # the settings of a removed CPU or module no longer exist
        tuning.put_back(Path(path), found)


_LAYOUTS: Mapping[str, Callable[[str, Sequence[Path]], None]] = {
    layout.undo_kind: layout.undo for _, layout in LAYOUTS if layout.undo_kind is not None
}
_ON_DEVICES = {**_LAYOUTS, signatures.KIND: signatures.wipe}
UNDO: Mapping[str, Callable[[str], None]] = {
    "mount": _unmount,
    "loop": lambda target: loops.detach(Path(target)),
    "image": lambda target: Path(target).unlink(missing_ok=True),
    "directory": _remove_directory,
    "tree": _remove_tree,
    "disk": lambda target: disk.clean(Path(target)),
    "tuning": _put_back,
    tuning.TIMER: tuning.start_timer,
}
