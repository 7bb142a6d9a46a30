"""``fslab run STUDY --fleet``: assigns a study to the machines of a fleet, and waits for their results."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import typer

from fslab.cli import fleet_status
from fslab.cli.common import console, open_store, print_json, say
from fslab.errors import InterruptedBySignal, ToolFailedError
from fslab.units import counted

if TYPE_CHECKING:
    from fslab.cli.run_options import FleetChoice, Labels
    from fslab.store.fleet_values import AssignmentSummary
    from fslab.store.store import Store
    from fslab.study.model import Study


def run(
    study: Study,
    path: str,
    chosen: FleetChoice,
    labels: Labels,
    *,
    limit_s: float | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Assign the study that was read from ``path``, wait, and show the results of all machines. Exit status 6 if no
    machine has a trial."""
    from fslab.fleet import starting
    from fslab.store.fleet import FleetStore

    with open_store(store, create=True) as opened:
        fleet = FleetStore(opened)
        ready, left_out = starting.chosen(fleet.machines(), chosen.machines or [])
        for left, why in left_out.items():
            say(f"without {left}: {why}", err=True)
        study_value = starting.assigned(study, path, budget_s=limit_s, name=labels.name, note=labels.note)
        made = starting.assignments(study_value, ready, spread=chosen.spread)
        fleet.assign(made)
        started = made[0].run
        if chosen.detach:
            _print_started(started, [each.machine for each in made], as_json=as_json)
            return
        say(f"run {started} on {counted(len(made), 'machine')}; Ctrl-C cancels it", err=True)
        try:
            ended = starting.watch(
                fleet,
                started,
                lambda changed: None if as_json else fleet_status.show(changed),
                partial(say, err=True),
            )
        except InterruptedBySignal:
            fleet.cancel(started)
            raise
        _conclude(opened, study.id, started, ended, as_json=as_json)


def _print_started(run_id: str, machines: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json({"run": run_id, "machines": machines})
    else:
        say(f"{run_id}: assigned to {', '.join(machines)}; fslab fleet status {run_id} shows how far it is")


def _conclude(
    store: Store, study: str, run_id: str, ended: list[AssignmentSummary], *, as_json: bool
) -> None:
    """Show the combined results of this run. Exit status 6 if no machine has a trial.

    What was moved was measured again elsewhere: its first campaign stays in the store, apart from these results.
    """
    from fslab.api import comparisons
    from fslab.report import fleet_terminal

    measured = [each.campaign for each in ended if each.trials and not each.was_moved]
    found = comparisons.fleet_of_campaigns(store, measured) if measured else None
    if as_json:
        print_json(
            {
                "run": run_id,
                "machines": [
                    {"name": each.machine, "campaign": each.campaign, "trials": each.trials,
                     "status": each.status.value, "message": each.message}
                    for each in ended
                ],
                "results": found and found.model_dump(mode="json"),
            }
        )  # fmt: skip
    elif found is not None:
        fleet_terminal.show(found, console())
        say(f"of all its runs: fslab fleet results {study}; one machine: fslab results {measured[0]}")
    if not measured:
        raise typer.Exit(ToolFailedError.exit_code)
