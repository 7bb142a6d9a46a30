"""The process that an agent starts to measure one assignment. ``python -m fslab.fleet.measuring REQUEST``.

First checks what this machine allows. Then runs the study like ``fslab run``, into the machine's own store; resumes a
campaign that exists already. Has no network connection. Ends when its agent ends.
"""

import contextlib
import signal
import sys
from functools import partial
from pathlib import Path

from fslab import names
from fslab.campaign import cleanup, launch
from fslab.campaign.consent import Consent
from fslab.campaign.observer import Observer
from fslab.cell import Frozen
from fslab.claims.undecided import cells_of
from fslab.errors import FslabError, InterruptedBySignal, UsageError
from fslab.fleet import worker_settings
from fslab.fleet.worker_settings import WorkerSettings
from fslab.storage import print_nothing
from fslab.store.campaign import Campaign
from fslab.store.fleet_values import Assignment
from fslab.store.store import Store
from fslab.study.load import load_text
from fslab.study.model import Study
from fslab.system import cgroup, signals, syscalls


class MeasuringRequest(Frozen):
    """``store``: path of the machine's own store. ``agent``: process id of the agent. ``group``: directory of the
    control group that the process enters first."""

    assignment: Assignment
    settings: WorkerSettings
    store: str
    agent: int
    group: Path | None = None


class _NotePrinter(Observer):
    """Prints notes to standard error, which the agent keeps."""

    def note(self, text: str) -> None:
        print(names.shown(text), file=sys.stderr, flush=True)


def measure(request: MeasuringRequest) -> None:
    """Run the remaining trials of the assignment's campaign. Raises the same errors as ``fslab run``."""
    allowed = request.settings.allow
    assigned = request.assignment.study
    with Store.open(request.store) as store:
        name = request.assignment.campaign
        known = store.has(name)
        study = load_text(assigned.text, assigned.file, assigned.changes, assigned.files)
        campaign = (
            launch.check_stored(store.campaign(name), store) if known else _new(request.assignment, study)
        )
        worker_settings.check(allowed, campaign.cells)
        cleanup.clean_all()
        wipe = [device for cell in campaign.cells for device in _devices(cell.stack.medium.options)]
        conditions = launch.RunConditions(
            consent=Consent(ask=partial(worker_settings.check_executed, allowed)),
            wipe=frozenset(wipe if allowed.wipe else ()),
            tell=_NotePrinter().note,
        )
        if known:
            launch.check_resumable(campaign, store, conditions)
        else:
            launch.create(campaign, store, conditions)
        launch.run(campaign, store, _NotePrinter(), conditions, new=not known)


def _new(assignment: Assignment, study: Study) -> Campaign:
    """Return the campaign with this machine's share of the workloads. Omits claims about other workloads."""
    assigned = assignment.study
    # Of a share of the workloads, the budget may be enough although it is not for all of them.
    tell = print_nothing if assigned.workloads else _NotePrinter().note
    made = launch.of_study(
        study, assigned.file, budget_s=assigned.budget_s, name=assigned.name, note=assigned.note, tell=tell
    )
    claims = study.claims
    if assigned.workloads:
        cells = tuple(cell for cell in made.cells if cell.workload.name in assigned.workloads)
        if not cells:
            raise UsageError("the study has none of the workloads", where=", ".join(assigned.workloads))
        memory = made.machine.get("memory_bytes")
        here = frozenset(cell.id for cell in cells)
        claims = tuple(claim for claim in claims if cells_of([claim], made.cells, memory) <= here)
        made = made.model_copy(update={"cells": cells})
    made = made.with_settings(fleet_run=assignment.run, claims=claims)
    return made.model_copy(update={"id": assignment.campaign})


def _devices(options: dict[str, str | int | float | bool]) -> list[str]:
    return str(options.get("path", "")).split()


def main(path: str) -> int:
    """Measure the assignment of the request in a file. Returns the exit code that ``fslab run`` would have."""
    signals.install()
    request = MeasuringRequest.model_validate_json(Path(path).read_bytes())
    syscalls.die_with(request.agent, signal.SIGTERM)
    if request.group is not None:
        with contextlib.suppress(OSError):  # its process group is enough
            cgroup.ControlGroup(path=request.group).enter()
    try:
        measure(request)
    except (FslabError, InterruptedBySignal) as error:
        print(f"fslab: {names.shown(str(error))}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
