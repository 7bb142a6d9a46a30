"""Waits until a run of the fleet is over, and says meanwhile how far its machines are."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from fslab.fleet.patience import patiently
from fslab.store.fleet import Assignment, FleetStore

LOOK_S = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineProgress:
    """``trials``: how many of its campaign the fleet's store has."""

    assignment: Assignment
    trials: int


def progress(fleet: FleetStore, run: str) -> list[MachineProgress]:
    """How far each machine of a run is."""
    found = fleet.assignments(run=run)
    return [MachineProgress(assignment=each, trials=fleet.store.count(each.campaign)) for each in found]


def watch(
    fleet: FleetStore,
    run: str,
    show: Callable[[list[MachineProgress]], object],
    tell: Callable[[str], object],
) -> list[MachineProgress]:
    """How all of them ended. ``show`` gets what has changed since it was called last."""
    known: dict[str, MachineProgress] = {}
    while True:
        now = patiently(lambda: progress(fleet, run), tell)
        if changed := [each for each in now if known.get(each.assignment.id) != each]:
            show(changed)
        known = {each.assignment.id: each for each in now}
        if all(each.assignment.status.is_final for each in now):
            return now
        time.sleep(LOOK_S)
