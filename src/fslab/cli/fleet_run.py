"""Runs of a fleet: ``fslab run STUDY --fleet``, and ``fslab fleet status``, ``cancel`` and ``forget``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import typer

from fslab.cli.common import JsonOption, StoreOption, console, open_store, print_json, say
from fslab.errors import InterruptedBySignal, ToolFailedError, UsageError
from fslab.units import counted, format_duration

if TYPE_CHECKING:
    from fslab.cli.run_options import FleetChoice, Labels
    from fslab.store.fleet_values import AssignmentSummary, FleetSchedule, MemberMachine
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
            names = [each.machine for each in made]
            if as_json:
                print_json({"run": started, "machines": names})
            else:
                how = f"fslab fleet status {opened.in_commands(started)} shows how far it is"
                say(f"{started}: assigned to {', '.join(names)}; {how}")
            return
        say(f"run {started} on {counted(len(made), 'machine')}; Ctrl-C cancels it", err=True)
        try:
            tell = partial(say, err=True)
            ended = starting.watch(fleet, started, lambda new: None if as_json else show(new), tell)
        except InterruptedBySignal:
            fleet.cancel(started)
            raise
        _conclude(opened, study.id, started, ended, as_json=as_json)


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
        machines = [
            {"name": each.machine}
            | {key: getattr(each, key) for key in ("campaign", "trials", "status", "message")}
            for each in ended
        ]
        print_json({"run": run_id, "machines": machines, "results": found})
    elif found is not None:
        fleet_terminal.show(found, console())
        of_all, one = map(store.in_commands, (study, measured[0]))
        say(f"of all its runs: fslab fleet results {of_all}; one machine: fslab results {one}")
    if not measured:
        raise typer.Exit(ToolFailedError.exit_code)


def status(run: str | None = None, *, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show the machines of the fleet, what runs on each, and how far runs are.

    Parameters:
        run RUN: Show how far this run is. Default: all unfinished runs.
    """
    from fslab.store.fleet import FleetStore

    with open_store(store) as opened:
        fleet = FleetStore(opened)
        machines, schedules = fleet.machines(), fleet.schedules()
        found = fleet.summaries(run=run)
    if run and not found:
        raise UsageError(f"no run '{run}'", where="RUN")
    if as_json:
        members = [{**each.model_dump(), "online": each.is_online} for each in machines]
        planned = [each.model_dump(exclude={"study": {"text", "files"}}) for each in schedules]
        print_json({"machines": members, "schedules": planned, "assignments": found})
        return
    if machines:
        _show_machines(machines)
    else:
        say("no machine has joined the fleet: fslab fleet worker")
    show_schedules(schedules)
    show(found)


def show(found: list[AssignmentSummary]) -> None:
    """Print a line for each assignment."""
    for each in found:
        message = f": {each.message}" if each.message else ""
        trials = f", {counted(each.trials, 'trial')}" if each.trials else ""
        say(f"{each.machine}: {each.file} {each.status.value}{trials}{message}")


def cancel(run: str, *, store: StoreOption = None) -> None:
    """Cancel a run. The machines clean up, and keep the trials that are stored.

    Parameters:
        run RUN: As fslab run --fleet and fslab fleet status print it.
    """
    from fslab.store.fleet import FleetStore

    with open_store(store) as opened:
        fleet = FleetStore(opened)
        if not fleet.summaries(run=run):
            raise UsageError(f"no run '{run}'", where="RUN", hint=opened.in_commands("fslab fleet status"))
        count = fleet.cancel(run)
    say(f"{counted(count, 'machine')} cancelled")


def forget(machine: str, *, store: StoreOption = None) -> None:
    """Remove a machine that is gone from the list of the fleet. Its results stay.

    Its assignments fail; with --spread they start again on another machine of the run.

    Parameters:
        machine NAME: Name of a machine that is gone.
    """
    from fslab.store import fleet_sql
    from fslab.store.fleet import FleetStore

    with open_store(store) as opened:
        fleet = FleetStore(opened)
        if not fleet.forget(machine):
            what = f"no machine '{machine}' that is gone"
            raise UsageError(what, where="MACHINE", hint="end its fslab fleet worker first")
        moved = fleet_sql.give_up(fleet, None)
    for line in (f"{machine} removed", *moved):
        say(line)


def _show_machines(machines: list[MemberMachine]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("machine", "", "runs", "kernel", "CPU", "labels"):
        table.add_column(title, overflow="fold")
    for each in machines:
        seen = "online" if each.is_online else f"not seen for {format_duration(each.unseen_s)}"
        seen += _clock(each.facts.get("clock_ahead_s"))
        cpu = f"{each.facts.get('cpus') or '?'} × {each.facts.get('cpu') or 'unknown'}"
        labels = " ".join(f"{key}={value}" for key, value in each.labels.items())
        cells = (each.name, seen, each.running or "–", each.facts.get("kernel") or "–", cpu, labels)
        table.add_row(*map(str, cells))
    console().print(table)


def _clock(ahead_s: object) -> str:
    """Return how far a machine's clock differs from the database's, if it does."""
    if not isinstance(ahead_s, int | float) or not ahead_s:
        return ""
    return f", clock {format_duration(abs(ahead_s))} {'ahead' if ahead_s > 0 else 'behind'}"


def show_schedules(schedules: list[FleetSchedule]) -> None:
    """Print a line for each schedule, with its last run and why the last start failed."""
    for each in schedules:
        last = f"last run {each.last_run}" if each.last_run else "not run yet"
        failed = f"; could not be started: {each.message}" if each.message else ""
        say(f"schedule {each.name}: {each.study.file} at {each.next_run:%Y-%m-%d %H:%M} UTC; {last}{failed}")
