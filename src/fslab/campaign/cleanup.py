"""Opens the workspace of a campaign, and removes what a crash left behind: processes, mounts, loop devices, images,
directories, settings.

Touches only what a journal names, processes that carry the campaign's mark or were started by one that does, and
directories for temporary files (``temporary``). Can be run twice.
"""

import contextlib
import errno
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fslab.campaign.undo_journal import CampaignJournal, JournalEntry, leftover
from fslab.errors import BusyError, FslabError, MountError, UnsafeError
from fslab.machine import tuning
from fslab.storage import Workspace, named_devices, user_mounts, zpool
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.layouts import volume_name
from fslab.system import (
    cgroup,
    disk_server,
    files,
    loop_devices,
    mountinfo,
    mounts,
    path_owners,
    paths,
    priority,
    process_marks,
    signals,
    temporary,
    trees,
)
from fslab.system.signals import Teardown
from fslab.tracing import ring

log = logging.getLogger("fslab.undo")
_NO_CAMPAIGN = "temporary"  # of the entries of directories that are in no journal
LOCK_WAIT_S = 1.0  # a killed campaign releases the settings a moment after its journal


def clean(campaign: str) -> list[JournalEntry]:
    """Undo all pending entries of one campaign and return them. BusyError if the campaign is running."""
    with CampaignJournal(campaign) as journal:
        return undo_pending(journal)


def clean_all() -> tuple[list[tuple[str, JournalEntry]], list[FslabError]]:
    """Undo what ended campaigns left; skip running campaigns. Remove temporary files that no process uses. Returns what
    was undone and what failed."""
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
            failures.append(_told(error, campaign))
    try:
        left = temporary.remove_left()
        done.extend((_NO_CAMPAIGN, JournalEntry(id="", kind="tree", target=str(path))) for path in left)
    except OSError as error:
        failures.append(_told(error, _NO_CAMPAIGN))
    return done, failures


def undo_pending(journal: CampaignJournal) -> list[JournalEntry]:
    """End the campaign's processes, undo its entries, newest first, and return those that were undone.

    A failure does not stop the others: the first one is raised, as a FslabError, after all entries were tried. Only an
    entry of an unknown kind raises at once. Settings stay pending while another campaign has changed some.
    """
    if mark := journal.known_mark():
        process_marks.end_marked(mark)
    places = _Places()
    _abort_disks(journal, places)
    done: list[JournalEntry] = []
    failures: list[Exception] = []
    pending = journal.pending()
    # Pools first: a device is free, and its signature can be wiped, when its pool is exported.
    ordered = sorted(pending, key=lambda entry: entry.kind == zpool.KIND)
    with _settings_locked(pending, failures) as later:
        for entry in reversed(ordered):
            if entry.kind not in {"mount", *_ON_DEVICES, *UNDO}:
                raise FslabError(
                    f"unknown kind of entry '{entry.kind}' ({entry.target})",
                    where=str(journal.path),
                    hint="a newer fslab wrote this journal: run its fslab clean",
                )
            if entry in later:
                continue
            try:
                _undo(journal, entry, places)
            except Exception as error:  # whatever it is: it must not keep the others
                failures.append(error)
            else:
                done.append(entry)
    if failures:
        raise _told(failures[0], journal.campaign)
    return done


def _told(error: Exception, campaign: str) -> FslabError:
    """Return the error for the user: also of a bug, because what is left matters more than its traceback."""
    if isinstance(error, FslabError):
        return error
    log.debug("campaign %s cannot be cleaned", campaign, exc_info=error)
    what = str(error) if isinstance(error, OSError) else repr(error)
    return FslabError(what, where=campaign, hint="fix this, then run: fslab clean")


class _Places:
    """The directories of entries: one whose server does not answer is waited for only once."""

    def __init__(self) -> None:
        self._silent: dict[Path, MountError] = {}

    def check(self, entry: JournalEntry) -> None:
        """Raise FslabError for an entry at a path that does not answer: whatever asks for it would wait without end."""
        if entry.kind not in _PATHS:
            return
        path = Path(entry.target)
        if known := self._silent.get(path.parent):
            raise known
        if not mounts.answers(path):
            self._silent[path.parent] = MountError(
                f"does not answer within {mounts.ANSWER_S:g} s",
                where=str(path),
                hint="start its server again, or unmount it (umount -f -l), then: fslab clean",
            )
            raise self._silent[path.parent]


def _undo(journal: CampaignJournal, entry: JournalEntry, places: _Places) -> None:
    places.check(entry)
    _check_ours(journal.campaign, entry)
    _check_disk(journal, entry)
    if entry.kind == "mount":
        _unmount(entry)
    elif entry.kind in _ON_DEVICES:
        _ON_DEVICES[entry.kind](entry.target, entry.nodes())
    elif not _is_reset(entry):
        UNDO[entry.kind](entry.target)
    journal.undone(entry.id)


def _is_reset(entry: JournalEntry) -> bool:
    """Return whether it is of the kernel, or a timer, from before a reboot, which has reset them."""
    return entry.kind in {*tuning.SETTINGS, "trace"} and entry.rebooted


@contextlib.contextmanager
def _settings_locked(
    pending: Sequence[JournalEntry], failures: list[Exception]
) -> Iterator[Sequence[JournalEntry]]:
    """Lock the settings of the machine if an entry needs it. Yields the entries to leave pending without the lock: they
    would change settings during another campaign's trial, which restores the changed ones later."""
    settings = [entry for entry in pending if entry.kind in tuning.SETTINGS and not _is_reset(entry)]
    with contextlib.ExitStack() as lock:
        try:
            if settings:
                lock.enter_context(tuning.alone(wait_s=LOCK_WAIT_S))
        except BusyError:
            log.warning(
                "another campaign has changed kernel settings: put back by the next run, or by fslab clean"
            )
        except FslabError as error:
            failures.append(error)
        else:
            settings = []
        yield settings


def _abort_disks(journal: CampaignJournal, places: _Places) -> None:
    """Abort the connections of virtual disks first: after that, nothing on these disks waits for a dead server.

    Errors are ignored here. The disk's own entry tries again and reports the error.
    """
    for entry in journal.pending():
        if entry.kind == "disk":
            with contextlib.suppress(FslabError, OSError):
                places.check(entry)
                _check_ours(journal.campaign, entry)
                disk_server.clean(Path(entry.target))


def _check_ours(campaign: str, entry: JournalEntry) -> None:
    """Raise UnsafeError for an entry that this campaign cannot have made: names contain the campaign's id. Also for a
    path that another user can make lead elsewhere by now, such as that of a caller of sudo who is no longer one."""
    if entry.kind == "tuning":
        ours = tuning.is_setting(Path(entry.target.partition("=")[0]))
    elif entry.kind == tuning.TIMER:
        ours = tuning.is_timer(entry.target)
    elif entry.kind == loop_devices.RENEWED:
        ours = loop_devices.NAME.fullmatch(entry.target) is not None
    elif entry.kind in _LAYOUTS:
        ours = entry.target == volume_name(campaign)
    elif entry.kind == user_mounts.KIND:
        ours = user_mounts.parse(entry.target) is not None
    elif entry.kind == disk_server.OF_USER:
        ours = Path(entry.target).is_absolute()
    elif entry.kind == named_devices.SIGNATURE:
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
    if entry.kind in _PATHS:
        path_owners.check_closed(Path(entry.target).parent)


def _check_disk(journal: CampaignJournal, entry: JournalEntry) -> None:
    """Raise FslabError for what is missing because its disk is: it will be there again."""
    path = Path(entry.target)
    if entry.place is not None and not os.path.lexists(path):
        there = str(mountinfo.containing(path).target) == entry.place
        why, again = f"its file system is not mounted at {entry.place}", "mount it"
    elif entry.kind in _ON_ITS_DISK:
        there = bool(entry.nodes()) or _ON_ITS_DISK[entry.kind](entry.target)
        names = ", ".join(each.name for each in entry.devices)
        why, again = f"{names} is gone, or another disk has its name", "attach it"
    else:
        return
    if not there:
        raise FslabError(
            f"{entry.kind} not undone: {why}",
            where=entry.target,
            hint=f"{again}, then: fslab clean; if it is gone for good, remove {journal.path}",
        )


def _unmount(entry: JournalEntry) -> None:
    path = Path(entry.target)
    mounts.unmount(path, {Path(os.path.realpath(each.name)).name for each in entry.devices})
    if path.is_dir():
        try:
            path.rmdir()
        except OSError as error:
            # Where root may not mount, it is a plain directory: its entry as a tree removes what is in it.
            if error.errno != errno.ENOTEMPTY:
                raise


def _remove_directory(target: str) -> None:
    path = Path(target)
    if path.is_dir():
        path.rmdir()


def _remove_tree(target: str) -> None:
    path = Path(target)
    if path.is_dir() and not path.is_symlink():
        trees.remove(path)


def _end_group(target: str) -> None:
    group = cgroup.ControlGroup(path=Path(target))
    if group.path.is_dir():
        group.end()
    if group.path.is_dir():
        raise FslabError(
            f"processes in this control group cannot be ended: {group.processes()}",
            where=target,
            hint="see their stacks in /proc, then run: fslab clean",
        )


def _put_back(target: str) -> None:
    path, *rest = target.split("=")
    tuning.put_back(Path(path), *rest)


_LAYOUTS: Mapping[str, Callable[[str, Sequence[Path]], None]] = {
    layout.undo_kind: layout.undo for _, layout in LAYOUTS if layout.undo_kind is not None
}
# Kinds that need their disk, and whether an entry is undone without it.
_ON_ITS_DISK: Mapping[str, Callable[[str], bool]] = {
    named_devices.SIGNATURE: lambda _: False,
    user_mounts.KIND: user_mounts.is_mounted,
}
_PATHS = frozenset({"mount", "loop", "image", "directory", "tree", "disk", disk_server.OF_USER})
_ON_DEVICES = {
    **_LAYOUTS,
    named_devices.SIGNATURE: named_devices.wipe_signature,
    user_mounts.KIND: user_mounts.again,
}
UNDO: Mapping[str, Callable[[str], None]] = {
    "loop": lambda target: loop_devices.detach(Path(target)),
    loop_devices.RENEWED: lambda target: loop_devices.renew(Path(target)),
    "image": lambda target: Path(target).unlink(missing_ok=True),
    "directory": _remove_directory,
    "tree": _remove_tree,
    "group": _end_group,
    "trace": ring.remove,
    zpool.KIND: zpool.clean,
    "disk": lambda target: disk_server.clean(Path(target)),
    disk_server.OF_USER: lambda target: disk_server.set_back(Path(target)),
    "tuning": _put_back,
    tuning.TIMER: tuning.start_timer,
}


@contextmanager
def opened_workspace(campaign: str, wipe: frozenset[str]) -> Iterator[Workspace]:
    """Open the workspace of a campaign. Leaving it undoes everything made in it, in any case.

    The journal undoes the directories, and what a signal left between its journal entry and its registration on an
    ExitStack.
    """
    with Teardown() as undo:
        with signals.shielded():  # a journal that is not closed leaves its file
            journal = undo.enter_context(CampaignJournal(campaign))
        undo.enter_context(priority.protected())
        undo_pending(journal)
        undo.callback(undo_pending, journal)
        runtime = paths.runtime() / campaign
        journal.will_create("directory", str(runtime))
        # Other users must have no access: with write access they could exchange our files, and with read access they
        # could take the machine lock.
        files.own_directory(runtime.parent, 0o700)
        runtime.mkdir(mode=0o700)
        scratch = runtime / "scratch"
        journal.will_create("tree", str(scratch))
        scratch.mkdir(mode=0o700)
        workspace = Workspace(
            campaign=campaign,
            runtime=runtime,
            images=paths.images(),
            journal=journal,
            mark=journal.mark,
            wipe=wipe,
        )
        undo.callback(workspace.exit.close)
        yield workspace
