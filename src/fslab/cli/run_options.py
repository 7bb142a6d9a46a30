"""The options of ``fslab run``, and what some of them mean as settings of a study. Prints nothing."""

from pathlib import Path
from typing import Annotated

import typer

from fslab.errors import UsageError

StudyArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]",
        help="A study file, or the id of a shipped study (fslab list studies). With --resume: a campaign or a study; "
        "default: the last unfinished campaign.",
    ),
]
BudgetOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Start no new trial after TIME, such as 10m.")
]
TrialsOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Trials of each cell; with --precision, the number to start with."),
]
PrecisionOption = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Repeat until the ranking of the stacks is clear, or they are known to differ by less than this, such as "
        "5%. The study's own budget does not apply then; --budget does.",
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="GOAL",
        help="With --precision: 'decided' (the default, as above) or 'precise': repeat until each ratio is known to "
        "within it.",
    ),
]
MaxTrialsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="With --precision: at most N trials of each cell; what is open then stays undecided.",
    ),
]
UntilDecidedOption = Annotated[
    bool,
    typer.Option(
        "--until-decided",
        help="Repeat until each claim of the study is decided, without the study's own budget; without claims, until "
        "it is decided which stack is best for each workload, or that they tie. A study with claims does so anyway "
        "within its budget, unless --trials says how many.",
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Finish an interrupted campaign; what is measured is kept. With --trials N: give a campaign, also a "
        "finished one, more trials.",
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A name for the campaign, which can be used instead of its id."),
]
NoteOption = Annotated[str | None, typer.Option(metavar="TEXT", help="A note to keep with the campaign.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan and touch nothing.")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print one line per trial instead of the live table.")
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the HTML report there; default: fslab/reports in your data directory."
    ),
]


def repeats(
    trials: int | None, precision: str | None, until: str | None, max_trials: int | None
) -> list[str]:
    """How often cells are repeated, as settings of the study."""
    given = {"trials": trials, "precision": precision, "until": until, "max_trials": max_trials}
    return [f"{key}={value}" for key, value in given.items() if value is not None]


def until_decided(until: str | None) -> list[str]:
    """What --until-decided means as settings of the study."""
    if until is not None:
        raise UsageError("is what --until-decided decides", where="--until", hint="leave one of them out")
    return ["until=claims"]


def named(study: str | None) -> str:
    """The study; UsageError, with the ids that there are, where none is named."""
    from fslab.study import shipped

    if study is None:
        raise UsageError(
            "which study?", hint=f"fslab run {shipped.ids()[0]}; there are: {', '.join(shipped.ids())}"
        )
    return study


def seconds(budget: str | None) -> float | None:
    """--budget in seconds."""
    from fslab.units import parse_duration

    if budget is None:
        return None
    try:
        found = parse_duration(budget)
    except ValueError as error:
        raise UsageError(str(error), where="--budget") from error
    if found <= 0:
        raise UsageError(
            f"'{budget}' must be greater than zero", where="--budget", hint="write 10m, or leave it out"
        )
    return found


def check_resume(
    settings: list[str], *, resume: bool, dry_run: bool, name: str | None, note: str | None
) -> None:
    """UsageError for options that a resumed campaign would ignore."""
    if not resume:
        return
    if name is not None or note is not None:
        raise UsageError(
            "the campaign is there already", where="--name, --note", hint="fslab name, fslab note"
        )
    if dry_run:
        raise UsageError(
            "--dry-run shows a study, and --resume names none", hint="fslab results tells what is left"
        )
    if settings:
        raise UsageError(
            "a campaign that is resumed stays as it is",
            where="--set, --precision",
            hint="start a new one; only --trials (or --max-trials) can give it more trials",
        )
