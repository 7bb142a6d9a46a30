"""``fslab fleet scheduler``: starts the runs of schedules when they are due, and gives up machines that are away.

Machines take their assignments from the store themselves: runs that a person starts need no scheduler. Two schedulers
of one store do not disturb each other.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fslab.errors import NotStoredError, StoreError
from fslab.fleet import starting
from fslab.store import fleet_moves
from fslab.store.fleet import FleetStore, open_store
from fslab.units import format_duration

LOOK_S = 2.0

GRACE_S = 300.0

STEP_S = 60.0  # a smaller step of the database's clock changes no decision


@dataclass(kw_only=True, slots=True)
class Scheduler:
    """``url``: the fleet's store, which may be unavailable at times. ``give_up_s``: how long a machine may be away
    before its assignments move to another one or fail."""

    url: str
    give_up_s: float
    tell: Callable[[str], object]
    fleet: FleetStore | None = None
    said: str = ""
    reachable_since: float | None = None
    clock_ahead_s: float | None = None

    def serve(self) -> None:
        """Serve until this process is interrupted. Raises NotStoredError if the store is not a PostgreSQL database."""
        while True:
            self.look()
            time.sleep(LOOK_S)

    def look(self) -> None:
        """Do once what is to be done now; nothing while the store is unavailable."""
        try:
            if self.fleet is None:
                self.fleet = FleetStore(open_store(self.url, create=True))
                self.tell(f"the scheduler is ready: store {self.fleet.store.path}")
            fleet = self.fleet
            self._look_at_clock(fleet)
            while fleet.start_due(partial(starting.started, fleet)):
                pass
            self._give_up(fleet)
        except NotStoredError:
            raise
        except StoreError as error:
            if error.what != self.said:
                self.tell(str(error))
            self.said = error.what
            self.reachable_since = None
        else:
            self.said = ""

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
