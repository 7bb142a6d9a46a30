"""``fslab fleet worker``: the agent of a machine. Takes its assignments from the fleet's store, one by one, has them
measured, and sends the results.

Each assignment is measured in a separate process (``measuring``), so that the agent does not disturb it. Only the
agent has access to the fleet's store. While an assignment is measured, it looks for no other.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import fslab
from fslab.errors import BusyError, FslabError, StoreDeniedError, StoreError, UsageError
from fslab.fleet.execution import Ending, Execution
from fslab.fleet.worker_settings import WorkerSettings
from fslab.machine import facts
from fslab.store.fleet import FleetStore, open_store
from fslab.store.fleet_values import Assignment, AssignmentStatus, MemberMachine
from fslab.store.retry import patiently
from fslab.system import files, paths, signals
from fslab.units import format_duration

BEAT_S = 20.0
CLOCK_S = 5.0  # a smaller difference of clocks is not shown
LOOK_S = 5.0  # of 1,000 machines: 200 look in a second
BOOT_ID, MACHINE_ID = Path("/proc/sys/kernel/random/boot_id"), Path("/etc/machine-id")
DIRECTORIES = "set FSLAB_RUNTIME_DIR and XDG_DATA_HOME to other directories"
FACTS = ("hostname", "distribution", "kernel", "product", "cpu", "cpus", "memory_bytes")


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Lock the directory. Raises BusyError if another agent uses it."""
    try:
        files.make_directories(directory, 0o700)
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        what = f"cannot be used: {error.strerror}"
        raise UsageError(what, where=str(directory), hint=DIRECTORIES) from error
    with files.closed_after(lock):
        if not files.locked(lock):
            hint = f"for a second agent, {DIRECTORIES}"
            raise BusyError("another agent uses this directory", where=str(directory), hint=hint)
        yield


def this_machine(settings: WorkerSettings, own: str) -> MemberMachine:
    """Return this machine as it announces itself. Its id depends on the boot id, so that cloned machines differ, and on
    the path of its own store, so that two agents of one machine do."""
    found = facts.gather()
    known = (path.read_bytes() for path in (MACHINE_ID, BOOT_ID) if path.is_file())
    identity = b"\0".join((*known, own.encode(), settings.name.encode()))
    digest = hashlib.blake2b(identity, digest_size=12).hexdigest()
    return MemberMachine(
        name=settings.name, id=digest, labels=dict(settings.labels), version=fslab.__version__,
        facts={name: found.get(name) for name in FACTS},
    )  # fmt: skip


@dataclass(kw_only=True, slots=True)
class Agent:
    """The agent. ``store``: URL of the fleet's store; ``own``: path of the machine's own store. ``tell`` gets a line
    for each event that the administrator should see. ``clock``: by how many seconds this machine's clock is ahead of
    the database's; None: by less than CLOCK_S. ``denied``: the database no longer lets this machine write."""

    settings: WorkerSettings
    store: str
    tell: Callable[[str], object]
    own: str = field(default_factory=lambda: str(paths.data() / "fleet.sqlite"))
    current: Execution | None = None
    clock: int | None = None
    denied: StoreDeniedError | None = None

    def run(self) -> None:
        """Serve until this process is interrupted. The next agent resumes an interrupted assignment.

        Raises StoreDeniedError if the fleet's store refuses what this machine writes, and BusyError if another agent,
        perhaps of another fleet, uses the same directories: each would remove the other's files and end its processes.
        """
        files.own_directory(paths.fleet(), 0o700)
        with ExitStack() as undo:
            for directory in {Path(self.own).parent, paths.fleet()}:
                undo.enter_context(only_one(directory))
            self._run()

    def _run(self) -> None:
        machine = this_machine(self.settings, self.own)
        fleet = patiently(lambda: self._joined(machine), self.tell)
        threading.Thread(target=self._beat, args=(fleet, machine), daemon=True).start()
        self.tell(f"{machine.name} is ready: store {fleet.store.path}")
        try:
            self._serve(fleet, machine)
        finally:
            try:
                fleet.leave(machine)
            except StoreError as error:
                self.tell(f"the fleet's store shows this machine as gone after 90 s: {error.what}")

    def _joined(self, machine: MemberMachine) -> FleetStore:
        fleet = FleetStore(open_store(self.store))
        self._announce(fleet, machine, None)
        if self.clock is not None:
            ahead = format_duration(abs(self.clock))
            way = "ahead of" if self.clock > 0 else "behind"
            self.tell(f"the clock of this machine is {ahead} {way} the database's: check its NTP")
            self._announce(fleet, machine, None)
        return fleet

    def _announce(self, fleet: FleetStore, machine: MemberMachine, running: str | None) -> None:
        """Report this machine as online, with how far its clock was off the last time."""
        facts_now = {**machine.facts, "clock_ahead_s": self.clock}
        ahead = fleet.announce(machine.model_copy(update={"running": running, "facts": facts_now}))
        self.clock = round(ahead) if abs(ahead) > CLOCK_S else None

    def _serve(self, fleet: FleetStore, machine: MemberMachine) -> None:
        said = ""
        while self.denied is None:
            try:
                with signals.kept():
                    has_run = self._run_next(fleet, machine)
                said = ""
            except (FslabError, ValueError, OSError) as error:
                if str(error) != said:
                    self.tell(str(error))
                has_run, said = False, str(error)
            if not has_run:
                time.sleep(LOOK_S)
        raise self.denied

    def _run_next(self, fleet: FleetStore, machine: MemberMachine) -> bool:
        """Run the oldest assignment that this machine can take. Returns whether there was one."""
        failure: FslabError | None = None
        passed = 0
        while queued := patiently(partial(fleet.queue, machine.name, passed), self.tell):
            for wanted in queued:
                try:
                    held = patiently(partial(fleet.take, wanted, machine), self.tell)
                except StoreError as error:  # what cannot be read does not keep others from being run
                    failure = error
                    continue
                if held is not None:
                    self._execute(fleet, held)
                    return True
            passed += len(queued)
        if failure is not None:
            raise failure
        return False

    def _execute(self, fleet: FleetStore, held: Assignment) -> None:
        self.tell(f"{held.id}: {held.study.file} begins")
        self.current = Execution(held=held, fleet=fleet, settings=self.settings, own=self.own, tell=self.tell)
        try:
            outcome = self._ended(self.current)
            status = outcome.status
            if status is not None:
                patiently(lambda: fleet.end(held, status, outcome.message), self.tell)
            said = "cancelled or taken over" if status is None else status.value
            self.tell(f"{held.id}: {said}{f': {outcome.message}' if outcome.message else ''}")
        finally:
            self.current = None

    def _ended(self, current: Execution) -> Ending:
        """Run the assignment. An error here (a full disk, a damaged store) ends the assignment, not the agent."""
        if (theirs := current.held.study.version) != fslab.__version__:
            message = f"assigned by fslab {theirs}, and this machine runs {fslab.__version__}: install the same version"
            return Ending(AssignmentStatus.REFUSED, message)
        try:
            return current.run()
        except (FslabError, OSError) as error:
            return Ending(AssignmentStatus.FAILED, str(error))

    def _beat(self, fleet: FleetStore, machine: MemberMachine) -> None:
        """Report this machine as online and renew the lease, every ``BEAT_S`` seconds, until the store refuses it."""
        said = ""
        while self.denied is None:
            time.sleep(BEAT_S)
            running = self.current
            try:
                self._announce(fleet, machine, None if running is None else running.held.id)
                if running is not None and not fleet.renew(running.held):
                    running.lost.set()
                said = ""
            except StoreDeniedError as error:
                self.denied = error
                if running is not None:
                    running.lost.set()
            except StoreError as error:
                if said != error.what:
                    self.tell(f"this machine cannot be announced: {error.what}")
                said = error.what
