"""The machine lock: campaigns on one machine take turns, trial by trial, because two at once would disturb each other.

The lock is an flock(2) on the directory of all runtime directories. The kernel releases it however its holder ends.
The holder also writes a note that identifies it; a note without the lock means nothing.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from fslab.campaign.observer import Observer
from fslab.cell import Frozen
from fslab.storage import Workspace
from fslab.system import device_writers, files, path_owners, untrusted_files

NOTE = "scratch/turn.json"
NOTE_BYTES = 4096
TELL_EVERY_S = 1.0


class Holder(Frozen):
    """The holder of the lock, as its note describes it."""

    campaign: str
    user: str
    pid: int
    since: datetime

    def __str__(self) -> str:
        return (
            f"campaign {self.campaign} of {self.user} (process {self.pid}), which has run a trial since "
            f"{self.since:%H:%M:%S} UTC"
        )


class WaitedTooLongError(Exception):
    """The lock was not free in time. ``whom``: its holder, in words."""

    def __init__(self, whom: str) -> None:
        super().__init__(whom)
        self.whom = whom


@contextmanager
def held(workspace: Workspace, observer: Observer, *, until: float | None = None) -> Iterator[float]:
    """Hold the lock during the block. Yields the seconds that were spent waiting for it.

    ``until``: a time of the monotonic clock at which to stop waiting, with WaitedTooLongError.
    """
    directory = os.open(workspace.runtime.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    note = workspace.runtime / NOTE
    try:
        waited_s = _wait(directory, workspace.runtime.parent, observer, until)
        ours = Holder(campaign=workspace.campaign, user=_user(), pid=os.getpid(), since=datetime.now(UTC))
        untrusted_files.write_new(note, ours.model_dump_json().encode())
        yield waited_s
    finally:
        note.unlink(missing_ok=True)
        os.close(directory)


def _wait(descriptor: int, directory: Path, observer: Observer, until: float | None) -> float:
    if files.locked(descriptor):
        return 0.0
    begun, ours = time.monotonic(), threading.Event()
    # Block, do not poll: the kernel queues those that wait, but with polling the first to ask would get the lock.
    teller = threading.Thread(target=_tell, args=(directory, observer, begun, ours), daemon=True)
    teller.start()
    try:
        if until is None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        elif not _lock_until(descriptor, until):
            raise WaitedTooLongError(_whom(directory))
    finally:
        ours.set()
        teller.join()
    waited_s = time.monotonic() - begun
    observer.turn_begins(waited_s)
    return waited_s


def _lock_until(descriptor: int, until: float) -> bool:
    """Take the lock, unless that takes longer than ``until``. Return whether it is held.

    flock(2) has no time limit. Another thread waits, with a descriptor of its own for the same open file: if it gets
    the lock too late, closing this descriptor, the last one by then, gives the lock up.
    """
    copy, taken = os.dup(descriptor), threading.Event()

    def take() -> None:
        try:
            fcntl.flock(copy, fcntl.LOCK_EX)
            taken.set()
        finally:
            os.close(copy)

    threading.Thread(target=take, daemon=True).start()
    return taken.wait(max(0.0, until - time.monotonic()))


def _tell(directory: Path, observer: Observer, begun: float, ended: threading.Event) -> None:
    while not ended.is_set():
        observer.waits(_whom(directory), time.monotonic() - begun)
        ended.wait(TELL_EVERY_S)


def _whom(directory: Path) -> str:
    process = device_writers.locker(directory)
    known = [found for path in directory.glob(f"*/{NOTE}") if (found := _read(path))]
    if process is not None:
        known = [holder for holder in known if holder.pid == process.pid]
    if known:
        return str(max(known, key=lambda holder: holder.since))
    return f"process {process}" if process else "another campaign"


def _read(note: Path) -> Holder | None:
    try:
        with note.open("rb") as file:
            return Holder.model_validate_json(file.read(NOTE_BYTES))
    except (OSError, ValidationError):  # it is being written, or was removed
        return None


def _user() -> str:
    own = path_owners.user_name(os.geteuid())
    behind = os.environ.get("SUDO_USER", "")
    return f"{behind} (as {own})" if behind.isprintable() and behind not in {"", own} else own
