"""``fslab fleet scheduler``: lets machines join, and keeps the process running that dispatches assignments.

Has access to the authority's key and the database. The dispatching process, which speaks Dask's protocol, has not.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fslab.cell import Frozen
from fslab.errors import FslabError, StoreError, UsageError
from fslab.fleet import certificates, confined, starting
from fslab.fleet.dispatching import DispatchSettings
from fslab.fleet.enrolment import PORT as ENROLMENT_PORT
from fslab.fleet.enrolment import EnrolmentServer
from fslab.store import fleet_moves
from fslab.store.fleet import FleetStore, open_store
from fslab.store.store import Store
from fslab.units import format_duration

PORT = 8786

LONGEST_WAIT_S = 30.0

LOOK_S = 2.0

GRACE_S = 300.0

STEP_S = 60.0  # a smaller step of the database's clock changes no decision


@dataclass(kw_only=True, slots=True)
class Pending:
    """``url``: the fleet's store, which may be unavailable at times. ``give_up_s``: how long a machine may be away
    before its assignments move to another one or fail."""

    url: str
    give_up_s: float
    tell: Callable[[str], object]
    store: Store | None = None
    said: str = ""
    reachable_since: float | None = None
    clock_ahead_s: float | None = None

    def now(self) -> dict[str, str] | None:
        """Return the machine of each open assignment, by the assignment's id; None while the store is unavailable."""
        try:
            if self.store is None:
                self.store = open_store(self.url)
            fleet = FleetStore(self.store)
            self._look_at_clock(fleet)
            while fleet.start_due(partial(starting.started, fleet)):
                pass
            self._give_up(fleet)
            found = fleet.open_assignments()
        except StoreError as error:
            if error.what != self.said:
                self.tell(str(error))
            self.said = error.what
            self.reachable_since = None
            return None
        self.said = ""
        return found

    def _look_at_clock(self, fleet: FleetStore) -> None:
        """Notice that the database's clock was set: all machines then seem to be away for as long."""
        ahead_s, known_s = fleet.now().timestamp() - time.monotonic(), self.clock_ahead_s
        self.clock_ahead_s = ahead_s
        if known_s is not None and abs(ahead_s - known_s) > STEP_S:
            way = "forward" if ahead_s > known_s else "back"
            self.tell(f"the database's clock was set {way} by {format_duration(abs(ahead_s - known_s))}")
            self.reachable_since = None

    def _give_up(self, fleet: FleetStore) -> None:
        """Give up assignments of lost machines, but first give all machines ``GRACE_S`` seconds to report after the
        store became available or its clock was set. Those of machines that were removed are given up at once."""
        now = time.monotonic()
        if self.reachable_since is None:
            self.reachable_since = now
        is_patient = now - self.reachable_since <= GRACE_S
        for line in fleet_moves.give_up(fleet, None if is_patient else self.give_up_s):
            self.tell(line)


class FleetSettings(Frozen):
    """The settings that ``fslab fleet init`` stored. ``address``: the scheduler's host name or IP address, as machines
    reach it. ``store``: URL of the fleet's store for the scheduler; ``worker_store``: for the machines."""

    address: str
    port: int = PORT
    enrolment_port: int = ENROLMENT_PORT
    store: str
    worker_store: str


def settings_path(directory: Path) -> Path:
    """Return the path of the settings in the directory of a fleet."""
    return directory / "fleet.json"


def create(directory: Path, settings: FleetSettings) -> None:
    """Create a fleet: its authority and its settings."""
    certificates.make_authority(directory, settings.address)
    certificates.write(settings_path(directory), settings.model_dump_json(indent=1).encode(), 0o600)


def load(directory: Path) -> FleetSettings:
    """Return the settings of the fleet in ``directory``. Raises UsageError if there is no fleet."""
    try:
        return FleetSettings.model_validate(json.loads(settings_path(directory).read_bytes()))
    except OSError as error:
        raise UsageError(
            f"no fleet here: {error.strerror}", where=str(directory), hint="fslab fleet init creates one"
        ) from error
    except ValueError as error:
        raise UsageError("is damaged", where=str(settings_path(directory))) from error


def serve(
    directory: Path,
    settings: FleetSettings,
    *,
    user: str,
    give_up_s: float,
    host: str,
    tell: Callable[[str], object],
) -> None:
    """Serve until this process is interrupted. ``user``: the user that the dispatching process runs as. ``host``: the
    address to listen on."""
    ids = confined.ids_of(user)
    confined.check(ids)
    for name in certificates.renew(directory):
        tell(f"certificate renewed: {name}; invitations that were made before are no longer valid")
    with _listening(host, settings.enrolment_port) as listening:
        scheduler = f"{settings.address}:{settings.port}"
        enrolment = EnrolmentServer(
            directory=directory, scheduler=scheduler, store=settings.worker_store, tell=tell
        )
        threading.Thread(target=enrolment.serve, args=(listening,), daemon=True).start()
        tell(
            f"machines can join at {settings.address}:{settings.enrolment_port}; the scheduler is at {scheduler}"
        )
        pending = Pending(url=settings.store, give_up_s=give_up_s, tell=tell)
        _dispatch(directory, settings, host, ids, pending)


def _dispatch(
    directory: Path, settings: FleetSettings, host: str, user: tuple[int, int] | None, pending: Pending
) -> None:
    """Keep the dispatching process running, and send it the open assignments every ``LOOK_S`` seconds."""
    mine = certificates.Credentials(directory=certificates.scheduler_directory(directory))
    files = {path.name: path.read_bytes() for path in (mine.authority, mine.certificate, mine.key)}
    told = DispatchSettings(host=host, port=settings.port, parent=os.getpid())
    wait_s = 1.0
    while True:
        started = time.monotonic()
        program = confined.start("scheduler", "fslab.fleet.dispatching", told, user, files)
        try:
            while (code := program.child.wait(LOOK_S)) is None:
                wanted = pending.now()
                if wanted is not None:
                    _told(program, wanted)
            pending.tell(f"the scheduler ended ({program.last_words() or code}): it is started again")
        finally:
            program.end()
        wait_s = 1.0 if time.monotonic() - started > LONGEST_WAIT_S else min(2 * wait_s, LONGEST_WAIT_S)
        time.sleep(wait_s)


def _told(program: confined.ConfinedProgram, wanted: dict[str, str]) -> None:
    """Send the open assignments. A process that does not read is ended; the caller restarts it."""
    try:
        program.send(json.dumps(wanted).encode())
    except BrokenPipeError:  # it has just ended
        pass
    except TimeoutError:
        program.child.end()


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise FslabError(
            f"cannot listen: {error.strerror or error}", where=f"{host}:{port}", hint="choose another port"
        ) from error
