"""Waits until a run of the fleet is over, and reports the progress of its machines."""

import time
from collections.abc import Callable

from fslab.fleet.patience import patiently
from fslab.store.fleet import FleetStore
from fslab.store.fleet_values import AssignmentSummary

LOOK_S = 2.0


def watch(
    fleet: FleetStore,
    run: str,
    show: Callable[[list[AssignmentSummary]], object],
    tell: Callable[[str], object],
) -> list[AssignmentSummary]:
    """Wait until all assignments of a run are final, and return them. ``show`` gets those that changed since its last
    call."""
    known: dict[str, AssignmentSummary] = {}
    while True:
        now = patiently(lambda: fleet.summaries(run=run), tell)
        if changed := [each for each in now if known.get(each.campaign) != each]:
            show(changed)
        known = {each.campaign: each for each in now}
        if all(each.status.is_final for each in now):
            return now
        time.sleep(LOOK_S)
