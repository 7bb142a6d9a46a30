"""Executes one assignment on this machine: starts and supervises its measuring process, and sends the results.

The process has a process group and, where possible, a control group of its own, and ends with the agent. It is
restarted if it was killed. An assignment that stores no trial for too long (a mount that hangs) is ended.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fslab.campaign import cleanup, undo_journal
from fslab.errors import BusyError, FslabError, NotStoredError, StoreError, UnsupportedError
from fslab.fleet.measuring import MeasuringRequest
from fslab.fleet.worker_settings import WorkerSettings
from fslab.store.campaign import CampaignStatus
from fslab.store.fleet import FencedError, FleetStore
from fslab.store.fleet_values import Assignment, AssignmentStatus
from fslab.store.retry import patiently
from fslab.store.store import Store
from fslab.store.transfer import copy_campaign
from fslab.system import cgroup, files, paths, proc, trees

LOOK_S = 2.0
SEND_S = 60.0
UNDO_S = 180.0  # a campaign's clean-up may take this long
STARTS = 4
SIGNALLED = 128  # an exit status from here on: a signal ended fslab
AGAIN_S = 5.0
LONGEST_MESSAGE = 1000
TAIL_BYTES = 8192
ENDED_WELL = (CampaignStatus.FINISHED, CampaignStatus.BUDGET_SPENT)
# Exit codes of errors that refuse an assignment before anything is done.
REFUSED = range(2, UnsupportedError.exit_code + 1)


@dataclass(frozen=True, slots=True)
class Ending:
    """How an assignment ended. ``status``: None if this machine no longer holds the assignment."""

    status: AssignmentStatus | None
    message: str | None = None


@dataclass(kw_only=True, slots=True)
class Execution:
    """One execution. ``own``: path of the machine's own store. ``lost`` is set by any thread that finds the
    assignment cancelled or taken over. ``left``: what the last clean-up could not undo."""

    held: Assignment
    fleet: FleetStore
    settings: WorkerSettings
    own: str
    tell: Callable[[str], object]
    lost: threading.Event = field(default_factory=threading.Event)
    left: str | None = None

    def run(self) -> Ending:
        """Measure, send the results, and return how the assignment ended. A later call resumes an interrupted one."""
        with Store.open(self.own) as own:
            return self._run(own)

    def _run(self, own: Store) -> Ending:
        name = self.held.campaign
        if not own.has(name) and patiently(lambda: self.fleet.store.has(name), self.tell):
            begun = (
                f"was begun with other results than those in {self.own}, such as before a new installation"
            )
            return Ending(AssignmentStatus.FAILED, f"{begun}: start the run again")
        directory = place(f"measuring-{self.held.machine}")
        log = directory / "log"
        try:
            starts, until = 0, time.monotonic() + UNDO_S
            while True:
                code = self._measure(directory / "request.json", log, own)
                if self.lost.is_set():
                    return Ending(None)
                # Busy: the clean-up of the previous agent's campaign is still running.
                busy = code == BusyError.exit_code and time.monotonic() < until
                starts += not busy
                if not busy and (code is None or 0 <= code < SIGNALLED or starts >= STARTS):
                    break
                self.tell(f"{self.held.id}: measuring ended with {code}, and starts again")
                time.sleep(AGAIN_S)
            return self._sent(own, code, _error_in(log))
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _measure(self, request: Path, log: Path, own: Store) -> int | None:
        """Run the process to its end. Returns its exit code, or None if it had to be ended."""
        group = measuring_group(self.own)
        wanted = MeasuringRequest(
            assignment=self.held, settings=self.settings, store=self.own, agent=os.getpid(),
            group=group and group.path,
        )  # fmt: skip
        request.write_text(wanted.model_dump_json(), "utf-8")
        argv = [sys.executable, "-P", "-m", "fslab.fleet.measuring", str(request)]
        with files.opened(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as output:
            child = proc.start(argv, output=output, cwd=Path("/"), env=paths.environment(), kept=True)
        try:
            return self._watched(child, own)
        finally:
            _end(child)
            self.left = _undo(self.tell)
            # Not while the watchdog of a killed process, which is in the group, cleans up.
            if group is not None and self.held.campaign not in undo_journal.leftover():
                group.end()

    def _watched(self, child: proc.Child, own: Store) -> int | None:
        looked, trials, changed = time.monotonic(), -1, time.monotonic()
        while (code := child.wait(LOOK_S)) is None:
            if self.lost.is_set():
                return None
            if time.monotonic() - looked < SEND_S:
                continue
            looked, now = time.monotonic(), self._measured(own)
            if now != trials:
                self._send_new(own)
                trials, changed = now, looked
            if looked - changed > self.settings.stall:
                self.tell(f"{self.held.id}: no trial for {self.settings.stall:.0f} s, ended")
                return None
        return code

    def _measured(self, own: Store) -> int:
        """Return the number of trials in the machine's own store, which has no campaign before the first."""
        try:
            return own.count(self.held.campaign)
        except NotStoredError:
            return 0

    def _send(self, own: Store, *, compare: bool) -> CampaignStatus | None:
        """Send the trials that the fleet's store does not have. Returns the campaign's status, None if not started.

        They are first in the machine's own store, so that nothing is lost while the fleet's store is unavailable.
        ``compare``: also compare the trials that are there already. Raises FencedError if another process took the
        assignment over or it was cancelled, StoreLostError if the fleet's store is unavailable, StoreError if another
        machine has written trials of this campaign.
        """
        if not own.has(self.held.campaign):
            return None
        campaign, fence = own.campaign(self.held.campaign), self.fleet.fence(self.held)
        copied = copy_campaign(own, self.fleet.store, campaign, fence=fence, only_new=not compare)
        if copied.name_taken is not None:
            self.tell(f"{campaign.id}: sent without its name '{copied.name_taken}': another campaign has it")
        if copied.foreign:
            raise StoreError(
                f"has {copied.foreign} of its trials that this machine did not measure: another one wrote them",
                where=campaign.id,
                hint=f"fslab delete {campaign.id} removes them; 'fslab store copy' sends this machine's own again",
            )
        return campaign.status

    def _send_new(self, own: Store) -> None:
        try:
            self._send(own, compare=False)
        except FencedError:
            self.lost.set()
        except StoreError as error:
            self.tell(f"cannot send results, measuring continues: {error.what}")

    def _sent(self, own: Store, code: int | None, error: str) -> Ending:
        try:
            status = patiently(lambda: self._send(own, compare=True), self.tell)
        except FencedError:
            return Ending(None)
        except StoreError as failed:
            return Ending(AssignmentStatus.FAILED, str(failed))
        if status in ENDED_WELL:
            return Ending(AssignmentStatus.FINISHED)
        if code in REFUSED and status is None:
            return Ending(AssignmentStatus.REFUSED, error)
        if code is None:  # what it said is only that it was interrupted
            message = f"no trial for {self.settings.stall:.0f} s"
            left = f"; cannot be undone: {self.left}" if self.left else ""
            return Ending(AssignmentStatus.FAILED, (message + left)[:LONGEST_MESSAGE])
        return Ending(AssignmentStatus.FAILED, error or f"exit status {code}")


def measuring_group(own: str) -> cgroup.ControlGroup | None:
    """Return the control group for measuring into the store at ``own``, which belongs to one agent only."""
    return cgroup.create(f"fslab-measuring-{zlib.crc32(own.encode()):08x}")


def _end(child: proc.Child) -> None:
    """End the process with SIGTERM, so that it cleans up; with SIGKILL after ``UNDO_S`` seconds.

    Raises FslabError if it survives SIGKILL.
    """
    until = time.monotonic() + UNDO_S
    while child.exit_code() is None and time.monotonic() < until:
        child.send(signal.SIGTERM)
        child.wait(AGAIN_S * 4)
    if child.exit_code() is None:
        child.send(signal.SIGKILL)
        if child.wait(UNDO_S) is None:
            what = f"process {child.pid} cannot be killed: it waits for a device or a file system that hangs"
            raise FslabError(what, hint="see its stack in /proc, and restart the machine")
    child.end()


def _undo(tell: Callable[[str], object]) -> str | None:
    """Clean up what a killed process left. Returns what could not be undone first."""
    try:
        _, failures = cleanup.clean_all()
    except FslabError as error:
        failures = [error]
    for failure in failures:
        tell(f"cannot be undone: {failure}")
    first = failures[0] if failures else None
    return None if first is None else ": ".join(filter(None, (first.where, first.what)))


def place(name: str) -> Path:
    """Create and return a directory for a program (mode 0700), named ``NAME-`` and eight random characters.

    Removes leftover directories of the same name as far as possible: what is in them is not trusted, and not followed.
    """
    files.own_directory(paths.fleet(), 0o700)
    for left in paths.fleet().glob(f"{name}-????????"):
        with suppress(OSError):
            trees.remove(left)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=paths.fleet()))


def _error_in(log: Path) -> str:
    """Return the last error message in the log, without its hint; else the last line."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            tail = file.read()
    except OSError:
        return ""
    lines = [line for line in map(str.strip, tail.decode("utf-8", "replace").splitlines()) if line]
    said = [line.removeprefix("fslab: ") for line in lines if line.startswith("fslab: ")]
    return (said or lines or [""])[-1][:LONGEST_MESSAGE]
