"""Makes assignments of a study, one for each machine that runs it, waits for their ends, and starts due schedules.

*each*: every machine runs the whole study. *spread*: the workloads are divided among the machines. Cells that are
compared with each other (all stacks of a workload, and all workloads of one claim) stay on one machine.

``Scheduler`` is ``fslab fleet scheduler``. Machines take their assignments from the store themselves: runs that a
person starts need no scheduler. Two schedulers of one store do not disturb each other.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import fslab
from fslab import feasibility
from fslab.campaign import trial_loop
from fslab.cell import Cell
from fslab.claims.undecided import cells_of, joined
from fslab.errors import NotStoredError, StoreError, UnsupportedError, UsageError
from fslab.plan.expand import expand
from fslab.store import fleet_sql
from fslab.store.fleet import FleetStore, open_store
from fslab.store.fleet_values import (
    LONGEST_NAME,
    AssignedStudy,
    Assignment,
    AssignmentSummary,
    FleetSchedule,
    MemberMachine,
)
from fslab.store.retry import patiently
from fslab.study.load import load_text
from fslab.study.model import Study
from fslab.units import format_duration

LOOK_S = 2.0  # between two looks at a run


def chosen(
    machines: Sequence[MemberMachine], wanted: Sequence[str]
) -> tuple[list[MemberMachine], dict[str, str]]:
    """Return the machines that can run a study, and by name the reason why other selected machines cannot.

    ``wanted``: names, or labels as ``key=value``. A machine must have all labels, and one of the names. Empty: all.
    Raises UsageError if there is no machine of a name, UnsupportedError if no machine can run the study.
    """
    labels = {tuple(each.split("=", 1)) for each in wanted if "=" in each}
    names = {each for each in wanted if "=" not in each}
    fitting = [each for each in machines if (each.name in names if names else labels <= each.labels.items())]
    if missing := names - {each.name for each in machines}:
        what = f"no such machine: {', '.join(sorted(missing))}"
        raise UsageError(what, where="--machines", hint="fslab fleet status lists them")
    left_out = {}
    for each in fitting:
        if not labels <= each.labels.items():
            left_out[each.name] = "has other labels"
        elif not each.is_online:
            left_out[each.name] = "not seen for 90 s"
        elif each.version != fslab.__version__:
            left_out[each.name] = f"runs fslab {each.version}, and this is {fslab.__version__}"
    ready = [each for each in fitting if each.name not in left_out]
    if not ready:
        none = f"none has {' and '.join(wanted)}" if wanted else "no machine has joined the fleet"
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items()) or none
        raise UnsupportedError(f"no machine can run it: {why}", where="--machines", hint="fslab fleet status")
    return ready, left_out


def assigned(
    study: Study,
    file: str,
    *,
    budget_s: float | None = None,
    name: str | None = None,
    note: str | None = None,
) -> AssignedStudy:
    """Return the study as a value. ``file``: its file or id. With ``name``, campaigns are named ``NAME-MACHINE``."""
    path = Path(file) if file.endswith((".yaml", ".yml")) else Path(f"{file}.yaml")
    return AssignedStudy(
        file=path.name, text=study.text, files=study.files, changes=study.overrides, budget_s=budget_s,
        name=name, note=note, version=fslab.__version__,
    )  # fmt: skip


def assignments(
    study: AssignedStudy,
    machines: Sequence[MemberMachine],
    *,
    spread: bool = False,
    schedule: str | None = None,
) -> list[Assignment]:
    """Return one assignment for each machine; with ``spread`` none for machines that are not needed."""
    run, now = trial_loop.new_id(), datetime.now(UTC)
    if study.name is not None and len(study.name) > LONGEST_NAME:
        hint = f"at most {LONGEST_NAME} characters"
        raise UsageError(f"'{study.name[:20]}…' is too long", where="--name", hint=hint)
    names = [each.name for each in machines]
    shares: Mapping[str, tuple[str, ...]] = _shares(study, names) if spread else dict.fromkeys(names, ())
    made = []
    for machine, workloads in shares.items():
        own = {"workloads": workloads, "name": None if study.name is None else f"{study.name}-{machine}"}
        identity = f"{run}-{machine}"
        made.append(
            Assignment(
                id=identity, run=run, schedule=schedule, machine=machine, campaign=identity, created=now,
                study=study.model_copy(update=own),
            )
        )  # fmt: skip
    return made


def started(fleet: FleetStore, schedule: FleetSchedule) -> list[Assignment]:
    """Return the assignments that a due schedule starts. Raises UnsupportedError if no machine can run it.

    They are of this version of fslab: the one that made the schedule may have been replaced since.
    """
    ready, _ = chosen(fleet.machines(), schedule.machines)
    study = schedule.study.model_copy(update={"version": fslab.__version__})
    return assignments(study, ready, spread=schedule.spread, schedule=schedule.name)


def _shares(assigned: AssignedStudy, machines: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the workloads of each machine. Each group, largest first, goes to the machine with the fewest cells."""
    study = load_text(assigned.text, assigned.file, assigned.changes, assigned.files)
    cells = expand(study, feasibility.all_resolved, feasibility.fitting)
    groups = sorted(_groups(study, cells), key=len, reverse=True)
    loads: dict[str, list[Cell]] = {machine: [] for machine in machines}
    for group in groups:
        least = min(loads, key=lambda machine: len(loads[machine]))
        loads[least] += group
    return {
        machine: tuple(dict.fromkeys(cell.workload.name for cell in share))
        for machine, share in loads.items()
        if share
    }


def _groups(study: Study, cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return groups of cells; each group must be measured on one machine."""
    groups = [frozenset({cell.workload.name}) for cell in cells]
    for claim in study.claims:
        about = cells_of([claim], cells, None)
        groups.append(frozenset(cell.workload.name for cell in cells if cell.id in about))
    return [[cell for cell in cells if cell.workload.name in names] for names in joined(groups)]


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
            while fleet.start_due(partial(started, fleet)):
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
        for line in fleet_sql.give_up(fleet, None if is_patient else self.give_up_s):
            self.tell(line)
