"""Campaigns on one machine take turns, trial by trial: two at once would measure each other.

The turn is a lock (flock) on the directory of all runtime directories, so that it is let go whatever happens to who
has it. Who has it leaves a note of who it is; a note without the lock means nothing.
"""

import fcntl
import os
import pwd
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from fslab.cell import Frozen
from fslab.storage import Workspace
from fslab.system import descriptors

NOTE = "scratch/turn.json"
NOTE_BYTES = 4096
TELL_EVERY_S = 1.0


class Waiter(Protocol):
    """Is told of the time that passes without a trial."""

    def waits(self, whom: str, waited_s: float) -> None:
        """``whom`` has the turn; told again and again, from another thread, until it is ours."""

    def turn_begins(self, waited_s: float) -> None:
        """The turn is ours, after so long."""


class Holder(Frozen):
    """Who has the turn."""

    campaign: str
    user: str
    pid: int
    since: datetime

    def __str__(self) -> str:
        return (
            f"campaign {self.campaign} of {self.user} (process {self.pid}), which has run a trial since "
            f"{self.since:%H:%M:%S} UTC"
        )


@contextmanager
def held(workspace: Workspace, waiter: Waiter) -> Iterator[float]:
    """Wait for the turn; yields the seconds that were waited."""
    directory = os.open(workspace.runtime.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    note = workspace.runtime / NOTE
    try:
        waited_s = _wait(directory, workspace.runtime.parent, waiter)
        ours = Holder(campaign=workspace.campaign, user=_user(), pid=os.getpid(), since=datetime.now(UTC))
        note.write_text(ours.model_dump_json(), "utf-8")
        yield waited_s
    finally:
        note.unlink(missing_ok=True)
        os.close(directory)


def _wait(descriptor: int, directory: Path, waiter: Waiter) -> float:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    else:
        return 0.0
    begun, ours = time.monotonic(), threading.Event()
    # Asking again and again instead would leave the turn to whoever happens to ask first: the kernel keeps a queue.
    teller = threading.Thread(target=_tell, args=(directory, waiter, begun, ours), daemon=True)
    teller.start()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    finally:
        ours.set()
        teller.join()
    waited_s = time.monotonic() - begun
    waiter.turn_begins(waited_s)
    return waited_s


def _tell(directory: Path, waiter: Waiter, begun: float, ended: threading.Event) -> None:
    while not ended.is_set():
        waiter.waits(_whom(directory), time.monotonic() - begun)
        ended.wait(TELL_EVERY_S)


def _whom(directory: Path) -> str:
    process = descriptors.locker(directory)
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
    except (OSError, ValidationError):  # it is being written, or gone by now
        return None


def _user() -> str:
    try:
        own = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        own = str(os.geteuid())
    behind = os.environ.get("SUDO_USER", "")
    return f"{behind} (as {own})" if behind.isprintable() and behind not in {"", own} else own
