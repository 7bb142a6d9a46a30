"""One assignment on this machine: its measuring process, watched, and what it measures, sent.

The process has a process group of its own and ends with the agent. It is started again where it was killed; an
assignment that stores no trial for too long (a mount that hangs) is ended.
"""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fslab.campaign import cleanup
from fslab.errors import BusyError, FslabError, StoreError, UnsupportedError
from fslab.fleet.confined import TAIL_BYTES, last_line, place
from fslab.fleet.measuring import MeasuringRequest
from fslab.fleet.patience import patiently
from fslab.fleet.sending import Sender
from fslab.fleet.worker_settings import WorkerSettings
from fslab.store.campaign import CampaignStatus
from fslab.store.fleet import FencedError, FleetStore
from fslab.store.fleet_values import Assignment, AssignmentStatus
from fslab.store.store import Store
from fslab.system import paths, proc

LOOK_S = 2.0
SEND_S = 60.0
UNDO_S = 180.0  # how long what a campaign made may take to be undone
STARTS = 4
SIGNALLED = 128  # and above: fslab was ended by a signal
AGAIN_S = 5.0
ENDED_WELL = (CampaignStatus.FINISHED, CampaignStatus.BUDGET_SPENT)
# Exit codes of what was refused before anything was done.
REFUSED = range(2, UnsupportedError.exit_code + 1)


@dataclass(frozen=True, slots=True)
class Ending:
    """How an assignment ended; ``status`` is None if it is no longer this machine's."""

    status: AssignmentStatus | None
    message: str | None = None


@dataclass(kw_only=True, slots=True)
class Execution:
    """``own``: path of the machine's own store; ``meanwhile`` is called about each second; ``lost`` is set by who finds
    that the assignment was cancelled or taken over."""

    held: Assignment
    fleet: FleetStore
    settings: WorkerSettings
    own: str
    tell: Callable[[str], object]
    meanwhile: Callable[[], object]
    lost: threading.Event = field(default_factory=threading.Event)

    def run(self) -> Ending:
        """Measure, send, and say how it ended. What an interruption leaves is resumed by another one."""
        with Store.open(self.own) as own:
            return self._run(Sender(own=own, fleet=self.fleet, held=self.held))

    def _run(self, sender: Sender) -> Ending:
        directory = place(f"measuring-{self.held.machine}")
        log = directory / "log"
        try:
            starts, until = 0, time.monotonic() + UNDO_S
            while True:
                code = self._measure(directory / "request.json", log, sender)
                if self.lost.is_set():
                    return Ending(None)
                # Busy: what the last agent began is still being undone.
                busy = code == BusyError.exit_code and time.monotonic() < until
                starts += not busy
                if not busy and (code is None or 0 <= code < SIGNALLED or starts >= STARTS):
                    break
                self.tell(f"{self.held.id}: measuring ended with {code}, and starts again")
                time.sleep(AGAIN_S)
            return self._sent(sender, code, _error_in(log))
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _measure(self, request: Path, log: Path, sender: Sender) -> int | None:
        """Run the process to its end; its exit code, None if it had to be ended."""
        wanted = MeasuringRequest(
            assignment=self.held, settings=self.settings, store=self.own, agent=os.getpid()
        )
        request.write_text(wanted.model_dump_json(), "utf-8")
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        argv = [sys.executable, "-m", "fslab.fleet.measuring", str(request)]
        try:
            child = proc.start(argv, output=output, cwd=Path("/"), env=paths.environment(), kept=True)
        finally:
            os.close(output)
        try:
            return self._watched(child, sender)
        finally:
            _end(child)
            _undo(self.tell)

    def _watched(self, child: proc.Child, sender: Sender) -> int | None:
        looked, trials, changed = time.monotonic(), -1, time.monotonic()
        while (code := child.wait(LOOK_S)) is None:
            if self.lost.is_set():
                return None
            self.meanwhile()
            if time.monotonic() - looked < SEND_S:
                continue
            looked, now = time.monotonic(), sender.trials()
            if now != trials:
                self._send_new(sender)
                trials, changed = now, looked
            if looked - changed > self.settings.stall:
                self.tell(f"{self.held.id}: no trial for {self.settings.stall:.0f} s, ended")
                return None
        return code

    def _send_new(self, sender: Sender) -> None:
        try:
            sender.send(compare=False)
        except FencedError:
            self.lost.set()
        except StoreError as error:
            self.tell(f"nothing can be sent, measuring goes on: {error.what}")

    def _sent(self, sender: Sender, code: int | None, error: str) -> Ending:
        try:
            status = patiently(lambda: sender.send(compare=True), self.tell, self.meanwhile)
        except FencedError:
            return Ending(None)
        except StoreError as failed:
            return Ending(AssignmentStatus.FAILED, str(failed))
        if status in ENDED_WELL:
            return Ending(AssignmentStatus.FINISHED)
        if code in REFUSED and status is None:
            return Ending(AssignmentStatus.REFUSED, error)
        what = error or (
            f"no trial for {self.settings.stall:.0f} s" if code is None else f"exit status {code}"
        )
        return Ending(AssignmentStatus.FAILED, what)


def _end(child: proc.Child) -> None:
    """End it so that it undoes what it made; SIGKILL if it does not. FslabError if not even that ends it."""
    until = time.monotonic() + UNDO_S
    while child.exit_code() is None and time.monotonic() < until:
        child.process.send_signal(signal.SIGTERM)
        child.wait(AGAIN_S * 4)
    if child.exit_code() is None:
        child.process.kill()
        if child.wait(UNDO_S) is None:
            raise FslabError(
                f"process {child.pid} cannot be killed: it waits for a device or a file system that hangs",
                hint="see its stack in /proc, and restart the machine",
            )
    child.end()


def _undo(tell: Callable[[str], object]) -> None:
    """What a killed process left."""
    try:
        _, failures = cleanup.clean_all()
    except FslabError as error:
        failures = [error]
    for failure in failures:
        tell(f"cannot be undone: {failure}")


def _error_in(log: Path) -> str:
    """What the process said last: its error, without the hint."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            tail = file.read()
    except OSError:
        return ""
    said = [line for line in tail.decode("utf-8", "replace").splitlines() if line.startswith("fslab: ")]
    return said[-1].removeprefix("fslab: ")[:1000] if said else last_line(tail)
