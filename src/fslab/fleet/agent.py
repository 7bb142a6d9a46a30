"""``fslab fleet worker``: the agent of a machine. Takes assignments one by one, has them measured, sends the results.

Each assignment is measured in a separate process (``measuring``), so that the agent does not disturb it. Only the
agent has access to the fleet's store. The process that talks to the scheduler (``link``) can only name assignments.
"""

import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, Queue

import fslab
from fslab.errors import BusyError, FslabError, StoreDeniedError, StoreError, UsageError
from fslab.fleet import certificates, confined
from fslab.fleet.execution import Ending, Execution
from fslab.fleet.link import LinkSettings
from fslab.fleet.link_keeper import LinkKeeper
from fslab.fleet.patience import patiently
from fslab.fleet.worker_settings import WorkerSettings
from fslab.machine import facts
from fslab.names import shown
from fslab.store.fleet import FleetStore, open_store
from fslab.store.fleet_values import AssignmentStatus, MemberMachine
from fslab.system import files, paths, signals
from fslab.units import format_duration

BEAT_S = 20.0
CLOCK_S = 5.0  # a smaller difference of clocks is not shown
LOOK_S = 1.0
MOST_WAITING = 64  # bounds what an untrusted link process can queue
BOOT_ID, MACHINE_ID = Path("/proc/sys/kernel/random/boot_id"), Path("/etc/machine-id")
FACTS = ("hostname", "distribution", "kernel", "product", "cpu", "cpus", "memory_bytes")


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Lock the directory. Raises BusyError if another agent uses it."""
    try:
        files.make_directories(directory, 0o700)
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            f"cannot be used: {error.strerror}", where=str(directory), hint="choose another --directory"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise BusyError(
            "another agent uses this directory",
            where=str(directory),
            hint="for a second agent, set --directory, FSLAB_RUNTIME_DIR and XDG_DATA_HOME",
        ) from error
    finally:
        os.close(lock)


def this_machine(settings: WorkerSettings, certificate: Path) -> MemberMachine:
    """Return this machine as it announces itself. Its id depends on the boot id, so that cloned machines differ, and on
    its certificate, so that two agents of one machine do."""
    found = facts.gather()
    identity = b"\0".join(path.read_bytes() for path in (MACHINE_ID, BOOT_ID, certificate) if path.is_file())
    digest = hashlib.blake2b(identity + settings.name.encode(), digest_size=12).hexdigest()
    return MemberMachine(
        name=settings.name, id=digest, labels=dict(settings.labels), version=fslab.__version__,
        facts={name: found.get(name) for name in FACTS},
    )  # fmt: skip


@dataclass(kw_only=True, slots=True)
class Agent:
    """The agent. ``scheduler``: host:port; ``store``: URL of the fleet's store; ``own``: path of the machine's own
    store. ``tell`` gets a line for each event that the administrator should see. ``waiting``: the assignments that are
    queued or running. ``clock``: by how many seconds this machine's clock is ahead of the database's; None: by less
    than CLOCK_S. ``denied``: the database no longer lets this machine write."""

    settings: WorkerSettings
    credentials: certificates.Credentials
    scheduler: str
    store: str
    tell: Callable[[str], object]
    own: str = field(default_factory=lambda: str(paths.data() / "fleet.sqlite"))
    queue: Queue[str] = field(default_factory=Queue)
    waiting: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    current: Execution | None = None
    clock: int | None = None
    denied: StoreDeniedError | None = None

    def run(self) -> None:
        """Serve until this process is interrupted. The next agent resumes an interrupted assignment.

        Raises UsageError if the certificate is another machine's, as on a copy of its disk, StoreDeniedError if the
        fleet's store refuses what this machine writes, and BusyError if another agent, perhaps of another fleet, uses
        the same directories: each would remove the other's files and end its processes.
        """
        files.own_directory(paths.fleet(), 0o711)
        with ExitStack() as undo:
            for directory in {Path(self.own).parent, paths.fleet()} - {self.credentials.directory}:
                undo.enter_context(only_one(directory))
            self._run()

    def _run(self) -> None:
        until = self._checked_certificate()
        user = confined.ids_of(self.settings.link_user)
        confined.check(user)
        machine = this_machine(self.settings, self.credentials.certificate)
        machine = machine.model_copy(
            update={"facts": {**machine.facts, "certificate_until": until.isoformat()}}
        )
        fleet = patiently(lambda: self._joined(machine), self.tell)
        mine = self.credentials
        link = LinkKeeper(
            name=f"link-{machine.name}",
            settings=LinkSettings(
                scheduler=self.scheduler, machine=machine.name, agent=os.getpid(), port=self.settings.link_port
            ),
            files={path.name: path.read_bytes() for path in (mine.authority, mine.certificate, mine.key)},
            user=user, request=self.request, is_waiting=self.is_waiting, tell=self.tell,
        )  # fmt: skip
        for each in fleet.assignments(machine=machine.name, statuses=(AssignmentStatus.RUNNING,)):
            self.request(each.id)  # left by an agent that was ended
        threading.Thread(target=self._beat, args=(fleet, machine, link), daemon=True).start()
        self.tell(f"{machine.name} is ready: scheduler {self.scheduler}, store {fleet.store.path}")
        try:
            self._serve(fleet, machine, link)
        finally:
            link.end()
            _leave(fleet, machine, self.tell)

    def _checked_certificate(self) -> datetime:
        """Return when this machine's certificate expires; tell it if it has to be renewed."""
        mine, join = self.credentials.certificate, "join again with a new invitation"
        if (named := certificates.name_in(mine)) != self.settings.name:
            raise UsageError(
                f"is the certificate of '{shown(named)}', and this machine's name is '{self.settings.name}'",
                where=str(mine),
                hint=f"{join} (fslab fleet invite), or set 'name' in worker.toml if it is the same machine",
            )
        until, now = certificates.expires(mine), datetime.now(UTC)
        if until - now < certificates.RENEWED:
            ends = "expires" if until > now else "expired"
            self.tell(f"this machine's certificate {ends} on {until:%Y-%m-%d}: {join}")
        return until

    def request(self, assignment: str) -> None:
        """Queue an assignment. It runs only if it is assigned to this machine. Thread-safe."""
        with self.lock:
            if assignment not in self.waiting and len(self.waiting) < MOST_WAITING:
                self.waiting.add(assignment)
                self.queue.put(assignment)

    def is_waiting(self, assignment: str) -> bool:
        """Return whether the assignment is queued or running. Thread-safe."""
        with self.lock:
            return assignment in self.waiting

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

    def _serve(self, fleet: FleetStore, machine: MemberMachine, link: LinkKeeper) -> None:
        while self.denied is None:
            link.keep()
            try:
                wanted = self.queue.get(timeout=LOOK_S)
            except Empty:
                continue
            try:
                with signals.kept():
                    self._execute(fleet, machine, wanted, link)
            except (FslabError, ValueError, OSError) as error:
                self.tell(str(error))
            finally:
                with self.lock:
                    self.waiting.discard(wanted)
        raise self.denied

    def _execute(self, fleet: FleetStore, machine: MemberMachine, wanted: str, link: LinkKeeper) -> None:
        held = patiently(lambda: fleet.take(wanted, machine), self.tell, link.keep)
        if held is None:
            return
        self.tell(f"{held.id}: {held.study.file} begins")
        self.current = Execution(
            held=held, fleet=fleet, settings=self.settings, own=self.own, tell=self.tell, meanwhile=link.keep
        )
        try:
            outcome = self._ended(self.current)
            status = outcome.status
            if status is not None:
                patiently(lambda: fleet.end(held, status, outcome.message), self.tell, link.keep)
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

    def _beat(self, fleet: FleetStore, machine: MemberMachine, link: LinkKeeper) -> None:
        """Report this machine as online and renew the lease, every ``BEAT_S`` seconds, until the store refuses it."""
        said = ""
        while self.denied is None:
            time.sleep(BEAT_S)
            running = self.current
            try:
                idle = "no connection to the scheduler" if link.is_failing else None
                now = running.held.id if running is not None else idle
                self._announce(fleet, machine, now)
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


def _leave(fleet: FleetStore, machine: MemberMachine, tell: Callable[[str], object]) -> None:
    try:
        fleet.leave(machine)
    except StoreError as error:
        tell(f"the fleet's store shows this machine as gone after 90 s: {error.what}")
