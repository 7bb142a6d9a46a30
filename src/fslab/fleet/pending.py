"""The open assignments of a fleet: starts schedules that are due, and moves or gives up those of lost machines."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fslab.errors import StoreError
from fslab.fleet import starting
from fslab.store import fleet_moves
from fslab.store.fleet import FleetStore, open_store
from fslab.store.store import Store

GRACE_S = 300.0


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

    def now(self) -> dict[str, str] | None:
        """Return the machine of each open assignment, by the assignment's id; None while the store is unavailable."""
        try:
            if self.store is None:
                self.store = open_store(self.url)
            fleet = FleetStore(self.store)
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

    def _give_up(self, fleet: FleetStore) -> None:
        """Give up assignments of lost machines, but first give all machines ``GRACE_S`` seconds to report after the
        store became available. Those of machines that were removed are given up at once."""
        now = time.monotonic()
        if self.reachable_since is None:
            self.reachable_since = now
        is_patient = now - self.reachable_since <= GRACE_S
        for line in fleet_moves.give_up(fleet, None if is_patient else self.give_up_s):
            self.tell(line)
