"""``fslab fleet``: run a study on many machines, and combine their results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fslab.cli import fleet_run, run_options
from fslab.cli.common import (
    CampaignsStudyArgument,
    JsonOption,
    OnlyWorkloadsOption,
    ShownMetricsOption,
    StoreOption,
    StudyChanges,
    console,
    open_store,
    option_value,
    print_json,
    say,
)
from fslab.cli.option_groups import App
from fslab.errors import InterruptedBySignal, UsageError
from fslab.units import parse_duration

app = App(no_args_is_help=True, help="Run a study on many machines, and combine their results.")


def results(
    study: CampaignsStudyArgument = None,
    *,
    against: str | None = None,
    workload: OnlyWorkloadsOption = None,
    metric: ShownMetricsOption = None,
    each: bool = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Combine a study's results from several machines, and predict those of another one.

    Only ratios are combined, never figures of different machines. On each machine two stacks are compared block by
    block; a random-effects model combines the ratios of the machines. Shown are the average ratio with its 95 % CI, the
    95 % prediction interval for another machine like these, and how much machines differ. Fewer than five machines are
    listed, not combined.

    All campaigns of the study in the store are used, those of one machine together; fslab store copy collects them in
    one store. If ratios differ between machines with one kernel, CPU or setting and those with another, this is shown
    as a coincidence: the cause may be something else.

    Parameters:
        against STACK: Compare all others with this stack or file system. Default: the first of the study.
        each: Show the ratio on each machine as well.

    Examples:
        fslab store copy lab7.sqlite all.sqlite            once for each machine
        fslab fleet results quick --store all.sqlite       each stack against the first of the study
        fslab fleet results quick --against xfs --each     against XFS, with the ratio on each machine
        fslab fleet results quick --json                   for a program

    Exit codes:
         0  shown
         2  no such workload, stack or metric, or nothing to compare
         7  the store has no campaign of that study
    """
    from fslab.api import comparisons

    with open_store(store) as opened:
        found = comparisons.fleet_of(
            opened, study, against=against, workloads=workload or [], metrics=metric or []
        )
    if as_json:
        print_json(found)
        return
    from fslab.report import fleet_terminal

    fleet_terminal.show(found, console(), each=each)


def changes(
    study: CampaignsStudyArgument = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show changes of level of a study on all machines, the newest first.

    A change can be detected from about ten campaigns on. Shown are its size, the facts of the machine that changed at
    the same campaign, and the two campaigns, for fslab compare and fslab explain. fslab history --machine shows one
    machine with its curves.
    """
    from fslab.api import comparisons
    from fslab.report.fleet_terminal import changes_summary as summary
    from fslab.report.fleet_terminal import fleet_changes as changes

    with open_store(store) as opened:
        found = comparisons.histories_of_machines(opened, study)
    if as_json:
        print_json(found)
        return
    say(f"{found[0].study if found else study}: {summary(found)}")
    for each in changes(found):
        with_it = f"; changed at the same time: {each.facts}" if each.facts else ""
        say(f"{each.machine}, {each.figure}: {each.words} since {each.since}{with_it}")
        say(f"  fslab compare {each.before} {opened.in_commands(each.since)}")


def serve(*, store: Annotated[str, typer.Option(envvar="FSLAB_STORE")], give_up_after: str = "1h") -> None:
    """Give up machines that are away, and start the runs of fslab fleet schedule, until interrupted.

    Run it as the owner of the database. Machines take their assignments without it. It can be stopped and restarted at
    any time: everything is in the database.

    Parameters:
        store URL: The fleet's PostgreSQL database; it may be empty.
        give_up_after TIME: After a machine has been offline for TIME, its assignment fails; with --spread it moves to
            another machine.
    """
    from fslab.fleet.starting import Scheduler

    give_up_s = option_value(parse_duration, give_up_after, "--give-up-after")
    _until_ended(Scheduler(url=store, give_up_s=give_up_s, tell=partial(say, err=True)).serve)


def worker(
    *, config: Path | None = None, store: Annotated[str | None, typer.Option(envvar="FSLAB_STORE")] = None
) -> None:
    """Make this machine a member of a fleet: run what the fleet assigns to it, until interrupted.

    Only FILE determines what studies may do here. Trials are stored here first ($XDG_DATA_HOME/fslab/fleet.sqlite),
    then sent: nothing is lost while the network is unavailable.

    Parameters:
        config FILE: What studies may do here, in TOML; default: /etc/fslab/worker.toml. Without the file: images in
            memory and in fslab's own directory, no device, no command, no tuning.
        store URL: The fleet's PostgreSQL database. Default: 'store' in FILE.

    Example; with store = "postgresql+psycopg://..." in /etc/fslab/worker.toml:
        fslab fleet worker
    """
    from fslab.fleet.agent import Agent
    from fslab.fleet.worker_settings import DEFAULT, WorkerSettings

    settings = WorkerSettings.load(config or DEFAULT, needed=config is not None)
    url = store or settings.store
    if url is None:
        raise UsageError("no URL of the fleet's database", where="--store", hint="or 'store' in worker.toml")
    _until_ended(Agent(settings=settings, store=url, tell=partial(say, err=True)).run)


def _until_ended(serve: Callable[[], object]) -> None:
    """Serve until a signal arrives. For a service, this is not an error."""
    try:
        serve()
    except InterruptedBySignal:
        say("stopped", err=True)


def schedule(
    study: str | None = None,
    *,
    changes: StudyChanges,
    at: str = "02:00",
    every: str = "24h",
    name: str | None = None,
    machines: run_options.MachinesOption = None,
    spread: run_options.SpreadOption = False,
    budget: str | None = None,
    trials: int | None = None,
    store: StoreOption = None,
) -> None:
    """Let the fleet run a study repeatedly. The schedule is in the database; fslab fleet scheduler starts the runs.

    Each run uses the machines that are online when it starts. A run that was due while no scheduler ran is started
    once, as soon as a scheduler runs. If a run cannot be started, fslab fleet status shows the reason.

    Parameters:
        study STUDY: A study file, or the id of a shipped study (fslab list studies).
        at HH:MM: Time of day of the first run, in UTC.
        every TIME: From one run to the next, such as 24h or 7d.
        name NAME: Replaces the schedule of this name; default: the study's id.
        budget TIME: Start no new trial of a run after TIME, such as 10m. Default: 'budget' of the study.
        trials N: Trials of each cell. Default: 'trials' of the study, or 5.

    Examples:
        fslab fleet schedule nightly.yaml                              each night at 02:00 UTC, on all machines
        fslab fleet schedule quick --at 03:30 --every 7d --machines rack=3
        fslab fleet schedule nightly.yaml --name new --on qemu --kernel /boot/vmlinuz-6.18

    See fslab fleet status for what is scheduled, and fslab history STUDY for the results over time.
    """
    from fslab.fleet import starting
    from fslab.names import word
    from fslab.store.fleet import FleetStore
    from fslab.store.fleet_values import FleetSchedule

    named = run_options.named(study, "fleet schedule")
    loaded = changes.load(named, *run_options.Repeats(trials=trials).settings())
    chosen = option_value(word, name or loaded.id, "--name")
    value = starting.assigned(loaded, named, budget_s=run_options.seconds(budget))
    every_s = _every(every)
    with open_store(store) as opened:
        fleet = FleetStore(opened)
        made = FleetSchedule(
            name=chosen, study=value, machines=tuple(machines or ()), spread=spread, every_s=every_s,
            next_run=_next(at, fleet.now()),
        )  # fmt: skip
        fleet.schedule(made)
    say(f"schedule {chosen}: {value.file} at {made.next_run:%Y-%m-%d %H:%M} UTC, then every {every}")


def unschedule(name: str, *, store: StoreOption = None) -> None:
    """Remove a schedule. Runs that it started continue, and their results stay.

    Parameters:
        name NAME: As fslab fleet status shows it.
    """
    from fslab.store.fleet import FleetStore

    with open_store(store) as opened:
        if not FleetStore(opened).unschedule(name):
            hint = f"{opened.in_commands('fslab fleet status')} lists them"
            raise UsageError(f"no schedule '{name}'", where="NAME", hint=hint)
    say(f"schedule {name} removed")


def _every(text: str) -> int:
    found = option_value(parse_duration, text, "--every")
    if found < 60:
        raise UsageError(f"'{text}' is less than a minute", where="--every", hint="write a time such as 24h")
    return int(found)


def _next(at: str, now: datetime) -> datetime:
    wanted = None
    with suppress(ValueError):
        wanted = time.fromisoformat(at)
    if wanted is None or wanted.tzinfo is not None:
        raise UsageError(
            f"'{at}' is not a time of day", where="--at", hint="write HH:MM in UTC, such as 02:00"
        )
    first = datetime.combine(now.date(), wanted.replace(tzinfo=UTC, second=0, microsecond=0))
    return first if first > now else first + timedelta(days=1)


app.add(
    ("scheduler", "Give up lost machines, and start scheduled runs.", serve),
    ("worker", "Make this machine a member of a fleet.", worker),
    ("status", "Show machines, and what they run.", fleet_run.status),
    ("schedule", "Run a study on the fleet repeatedly.", schedule),
    ("unschedule", "Remove a schedule.", unschedule),
    ("cancel", "End a run on all machines.", fleet_run.cancel),
    ("forget", "Remove a machine that is gone.", fleet_run.forget),
    ("results", "Show ratios of stacks, on average and for another machine.", results),
    ("changes", "Show what changed over time, on all machines.", changes),
)
