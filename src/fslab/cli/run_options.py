"""The options of ``fslab run``, and their translation into settings of a study. Prints nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from fslab.cli.common import StudyChanges, option_value
from fslab.errors import UsageError
from fslab.units import parse_duration

MachinesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Only this machine of the fleet, or only machines with a label, as KEY=VALUE. Repeatable.",
    ),
]
SpreadOption = Annotated[
    bool,
    typer.Option(
        "--spread",
        help="Divide the study's workloads among the machines of the fleet. Default: every machine runs all.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """How often cells are repeated.

    Parameters:
        trials N: Trials of each cell; with --precision, the number to start with. Default: 'trials' of the study, or 5.
        precision SHARE: Repeat until the ranking of the stacks is clear, or they are known to differ by less than
            SHARE, such as 5%. The study's own budget is then ignored; --budget is not.
        max_trials N: With --precision or --until-decided: at most N trials of each cell, after which open comparisons
            stay undecided. Default: 'max_trials' of the study, or 40.
        until_decided: Repeat until each claim of the study is decided; the study's own budget is ignored. In a study
            without claims: until it is decided which stack is best for each workload, or that they tie. Without this
            option a study with claims does the same within its budget, unless --trials is given.
    """

    trials: int | None = None
    precision: str | None = None
    max_trials: int | None = None
    until_decided: bool = False

    def settings(self) -> list[str]:
        """Return them as settings of a study."""
        names = ("trials", "precision", "max_trials")
        found = [f"{name}={value}" for name in names if (value := getattr(self, name)) is not None]
        return [*found, *(["until=claims"] if self.until_decided else [])]


@dataclass(frozen=True, kw_only=True)
class Labels:
    """What a user calls a campaign.

    Parameters:
        name NAME: A name for the campaign; every command takes it instead of the id.
        note TEXT: A note to store with the campaign.
    """

    name: str | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class FleetChoice:
    """Whether a fleet runs the study, and which of its machines.

    Parameters:
        fleet: Run the study on the machines of the fleet whose store --store or FSLAB_STORE names, wait for them, and
            combine their results: docs/fleet.md.
        detach: With --fleet: do not wait for the machines.
    """

    fleet: bool = False
    machines: MachinesOption = None
    spread: SpreadOption = False
    detach: bool = False


def named(study: str | None, command: str = "run") -> str:
    """Return the study. Raises UsageError, with one that ``command`` can run here and all ids, if none is given."""
    from fslab import shipped_studies

    if study is None:
        one = "here" if command == "run" and os.geteuid() != 0 else "quick"
        hint = f"name one, such as: fslab {command} {one}; shipped: {', '.join(shipped_studies())}"
        raise UsageError("no study given", hint=hint)
    return study


def given(options: Mapping[str, object]) -> list[str]:
    """Return the names of the options that have a value."""
    return [
        name for name, value in options.items() if value is not None and value is not False and value != []
    ]


def options_of(group: object, *but: str) -> dict[str, object]:
    """Return the values of a group of options by option, without the fields ``but``."""
    return {f"--{name.replace('_', '-')}": value for name, value in vars(group).items() if name not in but}


_NOT_WITH_FLEET = {
    "--resume": "a machine of the fleet resumes its campaign itself",
    "--wipe": "the worker.toml of a machine says what it may overwrite",
    "--allow-commands": "the worker.toml of a machine says which commands it may run",
    "--report": "afterwards: fslab report CAMPAIGN -o FILE, for the campaign of a machine",
}


def check_fleet(chosen: FleetChoice, others: Mapping[str, object]) -> None:
    """Raise UsageError for a fleet's options without --fleet, and for ``others`` that it does not support."""
    if not chosen.fleet and (wrong := given(options_of(chosen, "fleet"))):
        raise UsageError("needs --fleet", where=", ".join(wrong), hint="add --fleet")
    if chosen.fleet and (wrong := given(others)):
        hint = "; ".join(_NOT_WITH_FLEET[option] for option in wrong)
        raise UsageError("cannot be combined with --fleet", where=", ".join(wrong), hint=hint)


def seconds(budget: str | None) -> float | None:
    """Return --budget in seconds. Raises UsageError unless it is a duration greater than zero."""
    if budget is None:
        return None
    found = option_value(parse_duration, budget, "--budget")
    if found <= 0:
        hint = "write a time such as 10m, or omit it"
        raise UsageError(f"'{budget}' must be greater than zero", where="--budget", hint=hint)
    return found


def check_resume(changes: StudyChanges, repeats: Repeats, labels: Labels) -> None:
    """Raise UsageError for options that a resumed campaign would ignore."""
    if words := given(options_of(labels)):
        hint = f"use: {', '.join(f'fslab {word[2:]}' for word in words)}"
        raise UsageError("cannot be combined with --resume", where=", ".join(words), hint=hint)
    repeated = options_of(repeats, "trials", "max_trials")
    if wrong := given({**options_of(changes), **repeated}):
        hint = "start a new one; --trials or --max-trials extends a campaign"
        raise UsageError("a resumed campaign cannot be changed", where=", ".join(wrong), hint=hint)
