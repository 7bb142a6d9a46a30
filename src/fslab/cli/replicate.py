"""``fslab replicate``: print the replication page of a study, or write it as Markdown and HTML files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fslab import outputs
from fslab.cli.common import JsonOption, StoreOption, console, print_json, say
from fslab.errors import StoreError, ToolFailedError, UsageError

if TYPE_CHECKING:
    from fslab.claims.model import Verdicts
    from fslab.claims.replication import Condition, ReplicationPage, StudyResult
    from fslab.record import TrialRecord
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store
    from fslab.study.model import Study

EPILOG = """\b
Examples:
  fslab replicate loop-vm                          the last campaign of a study, claim by claim
  fslab replicate --all --write docs/replications  a page for each study that was run, and the table of all
  fslab replicate --all --run --write DIR          run first what was not run yet; the same command resumes

\b
Exit codes:
   0  shown or written, whatever the verdicts are
   2  no such study, or one without claims
   6  with --run: a study failed; the others are shown or written
   7  no campaign of it
"""


def replicate(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY|CAMPAIGN]…",
            help="Studies (the last campaign of each), or campaigns; default: the last campaign.",
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="All shipped studies with claims that have a campaign; with --run, all."),
    ] = False,
    run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="First run each study without changed settings, one after another, unless it has such a campaign. "
            "Interrupted campaigns are resumed. If a study fails, the next one runs.",
        ),
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write STUDY.md and STUDY.html of each study to DIR, and README.md with a table of all. Existing "
            "files are replaced; in the table, other studies keep their lines.",
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print or write the replication page of a study from its last campaign; with --run, run the study first.

    For each claim the page has what was printed, whether the publication's own table supports it, what was measured
    here with its interval, and the verdict. Then follow the conditions that differ, and a summary of all verdicts.
    """
    from fslab.store.store import Store

    if every and studies:
        raise UsageError(
            "cannot be combined with names of studies", where="--all", hint="give only one of them"
        )
    failed: list[str] = []
    with Store.open(store, create=run) as opened:
        if run:
            made, failed = _run(_names(studies, every=every), opened, write)
        else:
            campaigns = (
                _of_all(opened) if every else [_campaign(name, opened) for name in studies or ["last"]]
            )
            made = [_made(campaign, opened) for campaign in campaigns]
    if as_json:
        print_json([page.model_dump(mode="json") for _, page, _ in made])
    elif write is not None:
        _write(made, write)
        _name(made, write)
    else:
        for verdicts, page, _ in made:
            _show(verdicts, page)
    if failed:
        raise ToolFailedError(
            f"{len(failed)} of {len(failed) + len(made)} studies failed: {'; '.join(failed)}"
        )


def _names(studies: list[str] | None, *, every: bool) -> list[str]:
    from fslab.study import load, shipped

    if every:
        return [study for study in shipped.ids() if load.load(study).claims]
    if not studies:
        raise UsageError("no study given", where="--run", hint="name studies, or: --all")
    return studies


def _run(names: Sequence[str], store: Store, write: Path | None) -> tuple[list[Made], list[str]]:
    """Run each study. The pages are written after each one, so that a later failure cannot lose them."""
    from fslab.api import unattended
    from fslab.cli import consent, live
    from fslab.cli.progress import SilentObserver
    from fslab.cli.run import undo_leftovers

    made: list[Made] = []

    def then(campaign: Campaign) -> None:
        made.append(_made(campaign, store))
        if write is not None:
            _write(made, write)

    def watched() -> SilentObserver:
        return live.shown(console(stderr=True), quiet=False, silent=False)

    undo_leftovers(quiet=False)
    agree = partial(consent.check, allowed=False)
    return made, unattended.run_each(names, store, unattended.conditions(agree, _tell), watched, then)


def _tell(text: str) -> None:
    console(stderr=True).print(text, markup=False, soft_wrap=True)


Made = tuple["Verdicts", "ReplicationPage", "StudyResult"]


def _of_all(store: Store) -> list[Campaign]:
    """Return the last campaign of each shipped study with claims, in the order of the studies."""
    from fslab.study import load, shipped

    campaigns = {campaign.study_id: campaign for campaign in store.campaigns()}
    found = [campaigns[study] for study in shipped.ids() if study in campaigns and load.load(study).claims]
    if not found:
        raise StoreError("no campaign of a study with claims", where=store.path, hint="run them first: --run")
    return found


def _campaign(name: str, store: Store) -> Campaign:
    stem = Path(name).stem
    of_study = [campaign for campaign in store.campaigns() if campaign.study_id == stem]
    return of_study[-1] if of_study else store.campaign(name)


def _made(campaign: Campaign, store: Store) -> Made:
    from fslab.analysis.cost import cost_of
    from fslab.api import explanations
    from fslab.api.claims import judged_study
    from fslab.claims import replication
    from fslab.claims.verdict_words import level_words, summary

    verdicts, study = judged_study(campaign, store)
    if not verdicts.claims:
        raise UsageError(
            f"the study '{study.id}' has no claims", where=campaign.id, hint="name a study with claims"
        )
    records = store.trials(campaign.id)
    result = replication.result_of(verdicts, records, cost_of(records))
    page = replication.ReplicationPage(
        study=study.id, title=study.title, source=study.source, campaign=campaign.id,
        measured=verdicts.conditions or "", rows=replication.rows_of(verdicts),
        conditions=_conditions(study, campaign, records), effort=replication.effort_words(result),
        level=level_words(verdicts), known_limits=verdicts.known_limits, summary=summary(verdicts),
        reasons=explanations.of_claims(verdicts, explanations.evidence_of(campaign, store)),
    )  # fmt: skip
    return verdicts, page, result


def _conditions(study: Study, campaign: Campaign, records: Sequence[TrialRecord]) -> tuple[Condition, ...]:
    """Return the conditions of the publication beside those of the machine and the stacks of the trials."""
    from fslab.claims.replication import conditions_of
    from fslab.units import format_size

    facts = {**campaign.machine, **(records[0].provenance.machine if records else {})}
    media = {
        f"{cell.stack.medium.type} {cell.stack.medium.options.get('size', '')}".strip()
        for cell in campaign.cells
    }
    kinds = {cell.stack.machine.type for cell in campaign.cells}
    here = {
        "kernel": facts.get("kernel"),
        "distribution": facts.get("distribution"),
        "processors": None if facts.get("cpus") is None else str(facts["cpus"]),
        "memory": None if facts.get("memory_bytes") is None else format_size(facts["memory_bytes"]),
        "medium": ", ".join(sorted(media)),
        "machine": ", ".join(sorted(kinds)),
        "amounts": f"{campaign.settings.get('scale', 1):g} of the publication's",
    }
    theirs = study.published.conditions if study.published else {}
    return conditions_of(theirs, {name: value for name, value in here.items() if value})


def _show(verdicts: Verdicts, page: ReplicationPage) -> None:
    from fslab.claims import terminal

    terminal.show(verdicts, console())
    screen = console()
    screen.print()
    for one in page.conditions:
        screen.print(
            f"{one.name}: {one.theirs} in the publication, {one.here} here", markup=False, soft_wrap=True
        )
    for reason in page.reasons:
        told = f"explanation of claim {reason.claim}: {reason.where}: {reason.text} ({reason.certainty})"
        screen.print(told, markup=False, soft_wrap=True)
    screen.print(f"{page.effort}\n{page.summary}", markup=False, soft_wrap=True)


def _write(made: Sequence[Made], directory: Path) -> None:
    from fslab.claims import replication
    from fslab.report.page import render

    try:
        directory.mkdir(parents=True, exist_ok=True)
        for _, page, _ in made:
            text = "\n".join(replication.lines(page))
            outputs.replace(directory / f"{page.study}.md", f"{text}\n")
            html = render.replication(page, replication.COLUMNS, replication.SIGNS)
            outputs.replace(directory / f"{page.study}.html", html)
        readme = directory / "README.md"
        before = readme.read_text("utf-8", "replace") if readme.is_file() else ""
        index = "\n".join(replication.index([(page, result) for _, page, result in made], before))
        outputs.replace(readme, f"{index}\n")
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(directory)) from error


def _name(made: Sequence[Made], directory: Path) -> None:
    for _, page, _ in made:
        say(f"{directory / page.study}.md, .html: {page.summary}")
