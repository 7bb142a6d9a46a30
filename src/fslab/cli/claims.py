"""``fslab claims`` and ``replicate``: the claims of a study beside its publication and measured data; their page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fslab.cli.common import JsonOption, StoreOption, console, open_store, print_json, say
from fslab.errors import InterruptedBySignal, ToolFailedError, UsageError

if TYPE_CHECKING:
    from fslab import Observer
    from fslab.api.replications import Replication
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store


def claims(
    target: str = "last",
    *,
    published: bool = False,
    beside: str | None = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check each claim of a study twice: against the figures that the publication printed, and against trials on this
    machine.

    A printed figure is one number and compared as it is. Trials give intervals: a claim is replicated, contradicted
    (reversed, or different in size), below the margin (the stacks differ by less than the study's smallest difference
    of interest: a tie, or small), or open, with the reason. If the budget
    ended, `fslab run --resume CAMPAIGN --budget 1h` runs more trials where claims are open; `fslab run STUDY
    --until-decided` starts a new campaign without a budget. For the language of claims see docs/claims.md.

    Parameters:
        target CAMPAIGN|STUDY: A campaign (its id, the beginning of one, or 'last'), or a study (its id or file): then
            its last campaign and its other ones on this machine, so that intervals contain what changes between them.
        published: Only against the published figures; needs no campaign.
        beside CAMPAIGN: Another campaign of the study: how many results are the same as there, and the claims with
            another one.

    Examples:
        fslab claims                              the last campaign, claim by claim
        fslab claims last --beside last~1         which results have changed since another campaign
        fslab claims ext-generations --published  what a publication's own tables say; needs no run

    Exit codes:
         0  shown, whatever the verdicts are
         2  no such study or campaign, campaigns of two studies, or a mistake in the study
         7  no campaign of the study, or no store
    """
    from fslab.api import claims as api
    from fslab.report import claims_terminal

    if beside is not None:
        if published:
            raise UsageError(
                "cannot be combined with --published", where="--beside", hint="give only one of them"
            )
        agreement, names = api.compared(beside, target, store)
        if as_json:
            print_json({"a": names[0], "b": names[1], **agreement.model_dump()})
        else:
            claims_terminal.show_agreement(agreement, names, console())
        return
    found = api.verdicts(target, store, published_only=published)
    if as_json:
        counts = {"published": found.counts(published=True), "measured": found.counts(published=False)}
        print_json({**found.model_dump(), "counts": {**counts, "tested": found.tested}})
        return
    claims_terminal.show(found, console())


def replicate(
    studies: list[str] | None = None,
    *,
    every: bool = False,
    run: bool = False,
    write: Path | None = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print or write the replication page of a study from its last campaign; with --run, run the study first.

    For each claim the page has what was printed, whether the publication's own table supports it, what was measured
    here with its interval, and the verdict. Then follow the conditions that differ, and a summary of all verdicts.

    Parameters:
        studies STUDY|CAMPAIGN: Studies (the last campaign of each, with its other ones on this machine, so
            that intervals contain what changes between them), or campaigns alone; default: the last campaign alone.
        every --all: All shipped studies with claims that have a campaign; with --run, all.
        run: First run each study without changed settings, one after another, unless it has such a campaign.
            Interrupted campaigns are resumed. If a study fails, the next one runs.
        write DIR: Write STUDY.md of each study to DIR, and README.md with a table of all. Existing files are replaced;
            in the table, other studies keep their lines.

    Examples:
        fslab replicate loop-vm                          the last campaign of a study, claim by claim
        fslab replicate --all --write docs/replications  a page for each study that was run, and the table of all
        fslab replicate --all --run --write DIR          run first what was not run yet; the same command resumes

    Exit codes:
         0  shown or written, whatever the verdicts are
         2  no such study or campaign, or a study without claims
         6  with --run: a study failed; the others are shown or written
         7  no campaign of the study, or no store
    """
    from fslab.api.study_campaigns import naming
    from fslab.study import shipped

    if every and studies:
        raise UsageError(
            "cannot be combined with names of studies", where="--all", hint="give only one of them"
        )
    if run and every:
        studies = [*shipped.with_claims()]
    if run and not studies:
        raise UsageError("no study given", where="--run", hint="name studies, or: --all")
    failed: list[str] = []
    studies = studies or ["last"]
    with naming(studies[0]), open_store(store, create=run) as opened:
        if run:
            made, failed = _run(studies, opened, write)
        else:
            made = _stored(opened, None if every else studies)
    _print(made, write, as_json=as_json)
    if failed:
        raise ToolFailedError(
            f"{len(failed)} of {len(failed) + len(made)} studies failed: {'; '.join(failed)}"
        )


def _run(names: Sequence[str], store: Store, write: Path | None) -> tuple[list[Replication], list[str]]:
    """Run each study. The pages are written after each one, so that a later failure cannot lose them."""
    from fslab.api import replications
    from fslab.campaign.launch import RunConditions
    from fslab.cli import consent, progress
    from fslab.cli.run import undo_leftovers

    made: list[Replication] = []

    def then(campaign: Campaign) -> None:
        made.append(replications.replication_of(campaign, store))
        if write is not None:
            replications.write(made, write)

    def watched() -> Observer:
        return progress.shown(console(stderr=True), quiet=False, silent=False)

    undo_leftovers(quiet=False)
    conditions = RunConditions(consent=consent.of_user(), tell=partial(say, err=True))
    try:
        return made, replications.run_each(names, store, conditions, watched, then)
    except InterruptedBySignal as end:
        say("the same command resumes", err=True)
        end.told = True
        raise


def _stored(store: Store, names: Sequence[str] | None) -> list[Replication]:
    """Return those of the last campaigns of these studies; None: of all that have one."""
    from fslab.api import replications
    from fslab.api.study_campaigns import is_study, last_campaign

    if names is None:
        return [replications.replication_of(each, store) for each in replications.last_campaigns(store)]
    return [
        replications.replication_of(last_campaign(store, name), store, alone=not is_study(name))
        for name in names
    ]


def _print(made: Sequence[Replication], write: Path | None, *, as_json: bool) -> None:
    """Write the pages to the directory, if there is one, and print what was written, or the replications."""
    from fslab.api import replications
    from fslab.report import claims_terminal

    if write is not None:
        replications.write(made, write)
    if as_json:
        print_json([each.page for each in made])
    elif write is not None:
        for _, page, _ in made:
            say(f"{write / page.file_name}: {page.summary}")
    else:
        for verdicts, page, _ in made:
            claims_terminal.show(verdicts, console())
            say("")
            for reason in page.reasons:
                say(
                    f"explanation of claim {reason.claim}: {reason.where}: {reason.text} ({reason.certainty})"
                )
            say(f"{page.effort}\n{page.summary}")
