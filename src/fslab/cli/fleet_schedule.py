"""``fslab fleet schedule`` and ``unschedule``: studies that a fleet runs repeatedly."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, time, timedelta

from fslab.cli import run_options
from fslab.cli.common import StoreOption, StudyChanges, open_store, option_value, say
from fslab.errors import UsageError
from fslab.units import parse_duration

EPILOG = """\b
Examples:
  fslab fleet schedule nightly.yaml                              each night at 02:00 UTC, on all machines
  fslab fleet schedule quick --at 03:30 --every 7d --machines rack=3
  fslab fleet schedule nightly.yaml --name new --on qemu --kernel /boot/vmlinuz-6.18

See fslab fleet status for what is scheduled, and fslab history STUDY for the results over time.
"""


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
        study [STUDY]: A study file, or the id of a shipped study (fslab list studies).
        at HH:MM: Time of day of the first run, in UTC.
        every TIME: From one run to the next, such as 24h or 7d.
        name NAME: Replaces the schedule of this name; default: the study's id.
        budget TIME: Start no new trial of a run after TIME, such as 10m. Default: 'budget' of the study.
        trials N: Trials of each cell. Default: 'trials' of the study, or 5.
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
            raise UsageError(f"no schedule '{name}'", where="NAME", hint="fslab fleet status lists them")
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
