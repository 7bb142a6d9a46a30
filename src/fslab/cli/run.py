"""``fslab run``: run a study, or finish one that was interrupted; ends with the table."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli import consent
from fslab.cli import report as reports
from fslab.cli.common import (
    JsonOption,
    KernelOption,
    MemoryOption,
    ModulesOption,
    OnOption,
    ScaleOption,
    SetOption,
    StoreOption,
    console,
    machine_settings,
    print_json,
    scale_setting,
)
from fslab.cli.consent import AllowOption
from fslab.errors import BusyError, ToolFailedError, UnsafeError, UsageError

if TYPE_CHECKING:
    from fslab.cli.progress import Quiet
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store
    from fslab.study.model import Study


WITH_ROOT = f"""
You are not root. With root, fslab also makes file systems afresh, compares ext4, XFS and btrfs side by side on
the same image or disk (sudo {sys.argv[0]} run quick), and drops all caches before each trial."""


def run(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY]",
            help="A study file, or the id of a shipped study (fslab list studies). With --resume: a campaign "
            "or a study; default: the last unfinished campaign.",
        ),
    ] = None,
    settings: SetOption = None,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start no new trial after TIME, such as 10m.")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="Trials of each cell; with --precision, the number to begin with."),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Repeat until it is sure which of two stacks is better, or that they differ by less than "
            "this, such as 5%. The study's own budget does not apply then; --budget does.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL",
            help="With --precision: 'decided' (the default, as above) or 'precise': repeat until each ratio is "
            "known to within it.",
        ),
    ] = None,
    max_trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --precision: leave a cell undecided after so many trials."),
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Repeat until each claim of the study holds or is contradicted: trials go where claims are open. "
            "With --precision (default: 5%), what is nearer than that to a claim's limit is left open.",
        ),
    ] = False,
    on: OnOption = None,
    kernel: KernelOption = None,
    modules: ModulesOption = None,
    guest_memory: MemoryOption = None,
    scale: ScaleOption = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Finish an interrupted campaign; what is measured is kept. With --trials N: give a campaign, also a "
            "finished one, more trials.",
        ),
    ] = False,
    wipe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DEVICE",
            help="This very device of the study may be overwritten although it carries data, or is too large to be "
            "read whole within a minute and so not known to be blank. Repeatable.",
        ),
    ] = None,
    allow_commands: AllowOption = False,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A name for the campaign, to be used instead of its id."),
    ] = None,
    note: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A note to keep with the campaign.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and touch nothing.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="One line per trial also on a terminal.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the HTML report there; default: fslab/reports in your data directory."
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a study on this machine and print what it found.

    Each cell (stack × workload) is repeated as often as the study says; with --precision, as often as it takes: the
    trials that are left go to what is still open, and looking at the figures meanwhile does not spoil the 95 %.

    With --until-decided they go to the claims of the study that are open; see: fslab claims.

    Trials are interleaved and each is stored at once, so Ctrl-C, a crash or a power cut loses at most the one
    in flight: --resume finishes the rest. Invalid trials are replaced, at most as many as were asked for. Whatever is
    made on the way (images, loop devices, mounts) is gone afterwards, and after a crash with the next run or with:
    fslab clean.

    No device is touched unless the study names it, and none that carries data unless --wipe names it too. A device
    counts as blank only when every byte of it was read; what cannot be read within a minute needs --wipe.

    Exits 0 when trials came off (whether they are sound stands in the table), 6 when each failed, 130 and the like
    after a signal.
    """
    reports.check_name(report)
    limit_s = _seconds(budget)
    more = (trials, max_trials) if resume else (None, None)
    trials, max_trials = (None, None) if resume else (trials, max_trials)
    if resume and (name is not None or note is not None):
        raise UsageError(
            "the campaign is there already", where="--name, --note", hint="fslab name, fslab note"
        )
    repeats = {"trials": trials, "precision": precision, "until": until, "max_trials": max_trials}
    settings = [*(settings or []), *(f"{key}={value}" for key, value in repeats.items() if value is not None)]
    settings += _until_decided(study, settings, precision, until) if until_decided else []
    settings += [*scale_setting(scale), *machine_settings(on, kernel, modules, guest_memory)]
    if dry_run or resume:
        _check_together(resume=resume, dry_run=dry_run, settings=settings)
    if dry_run:
        _print_plan(study, [*settings, *([f"budget={budget}"] if budget else [])], as_json)
        return
    _undo_leftovers(quiet=quiet or as_json)
    from fslab.cli import live
    from fslab.store.store import Store

    with Store.open(store, create=not resume) as opened:
        if resume:
            campaign = _extended(opened, study, *more) if any(more) else _to_resume(opened, study)
            consent.check(campaign.cells, allowed=allow_commands)
            for changed in consent.changed_files(campaign.settings):
                console(stderr=True).print(changed, markup=False)
        else:
            campaign, own_limit_s = _created(
                opened, _named(study), settings or [], limit_s, wipe or [], allow_commands, name, note
            )
            limit_s = limit_s or own_limit_s
        shown = live.shown(console(stderr=True), quiet=quiet, silent=as_json)
        _conduct(campaign, opened, shown, limit_s=limit_s, wipe=frozenset(wipe or []), new=not resume)
        _conclude(opened.campaign(campaign.id), opened, report, as_json=as_json)


def _conclude(campaign: Campaign, store: Store, report: Path | None, *, as_json: bool) -> None:
    """Print the results and write the report; exit with 6 when there are none to speak of."""
    from fslab.cli import causes, results

    document = results.as_document(campaign, store)
    if as_json:
        print_json({**document, "why": causes.as_document(causes.evidence_of(campaign, store))})
    else:
        results.show(campaign, store)
        causes.show_briefly(campaign, store)
        typer.echo(f"stored in {store.path}")
    if report is not None or not as_json:
        reports.conclude(campaign, store, report, quiet=as_json)
    if not as_json and os.geteuid() != 0:
        typer.echo(WITH_ROOT)
    counts = document["counts"]
    if counts["stored"] and counts["failed"] == counts["stored"]:
        raise typer.Exit(ToolFailedError.exit_code)


def _until_decided(
    study: str | None, settings: list[str], precision: str | None, until: str | None
) -> list[str]:
    """What --until-decided means as settings of the study; its own precision is kept."""
    from fslab.study import load

    if until is not None:
        raise UsageError("is what --until-decided decides", where="--until", hint="leave one of them out")
    known = precision or load.load(_named(study), settings).precision
    return ["until=claims", *([] if known else ["precision=5%"])]


def _check_together(*, resume: bool, dry_run: bool, settings: list[str] | None) -> None:
    """Options that would be ignored are refused."""
    if resume and dry_run:
        raise UsageError(
            "--dry-run shows a study, and --resume names none", hint="fslab results tells what is left"
        )
    if resume and settings:
        raise UsageError(
            "a campaign that is resumed stays as it is",
            where="--set, --precision",
            hint="start a new one; only --trials (or --max-trials) can give it more trials",
        )


def _print_plan(study: str | None, settings: list[str] | None, as_json: bool) -> None:
    from fslab.cli import plan

    plan.plan(_named(study), settings, as_json=as_json)


def _named(study: str | None) -> str:
    from fslab.study import shipped

    if study is None:
        raise UsageError(
            "which study?", hint=f"fslab run {shipped.ids()[0]}; there are: {', '.join(shipped.ids())}"
        )
    return study


def _undo_leftovers(*, quiet: bool) -> None:
    from fslab.campaign import cleanup

    done, failures = cleanup.clean_all()
    for error in failures:
        console(stderr=True).print(f"could not undo what an earlier run left behind: {error}", markup=False)
    if done and not quiet:
        console(stderr=True).print(f"undone: {len(done)} things that an earlier run left behind")


def _created(
    store: Store,
    name: str,
    settings: list[str],
    limit_s: float | None,
    wipe: list[str],
    allow_commands: bool = False,
    called: str | None = None,
    note: str | None = None,
) -> tuple[Campaign, float | None]:
    """A new campaign of a study, checked to be possible and stored, and the study's own budget in seconds."""
    from datetime import UTC, datetime

    from fslab.campaign import campaign as campaigns
    from fslab.campaign import liveness, preflight
    from fslab.machine import choose, facts
    from fslab.plan.expand import expand
    from fslab.store.campaign import Campaign
    from fslab.study import load

    study = load.load(name, settings)
    campaign = Campaign(
        id=campaigns.new_id(),
        study_id=study.id,
        study_title=study.title,
        study_source=study.text,
        settings={
            "set": list(study.overrides),
            "budget_s": limit_s or study.limit_s,
            "scale": study.scale,
            **_files(study, name),
            "stopping": study.stopping.model_dump(mode="json"),
            "claims": [claim.model_dump(mode="json", exclude_defaults=True) for claim in study.claims],
            liveness.USER: os.geteuid(),
        },
        seed=study.seed,
        cells=expand(study, choose.resolved),
        trials=study.trials,
        machine=facts.gather(),
        created=datetime.now(UTC),
        name=called,
        note=note,
    )
    preflight.check(campaign.id, campaign.cells, frozenset(wipe), _tell)
    consent.check(campaign.cells, allowed=allow_commands)
    store.create_campaign(campaign)
    return campaign, study.limit_s


def _tell(text: str) -> None:
    console(stderr=True).print(text, markup=False)


def _files(study: Study, name: str) -> dict[str, object]:
    """The texts of the files that the study names, and where they were."""
    return {"files": study.files, "directory": str(Path(name).absolute().parent)} if study.files else {}


def _to_resume(store: Store, wanted: str | None) -> Campaign:
    """The last unfinished campaign, or that of a study (its id or its file), or the one named."""
    from fslab.errors import StoreError
    from fslab.store.campaign import CampaignStatus

    study = None if wanted is None else Path(wanted).stem
    of_study = [campaign for campaign in store.campaigns() if study in {None, campaign.study_id, "last"}]
    unfinished = [campaign for campaign in of_study if campaign.status is not CampaignStatus.FINISHED]
    if unfinished:
        return unfinished[-1]
    if of_study or wanted is None:
        what = f"every campaign of '{study}' is finished" if wanted else "no campaign is unfinished"
        raise StoreError(what, where=store.path, hint=f"start one: fslab run {wanted or 'quick'}")
    return store.campaign(wanted)


def _extended(store: Store, wanted: str | None, trials: int | None, max_trials: int | None) -> Campaign:
    """A campaign, finished or not, that gets more trials of each cell: the one named, or the last one."""
    of_study = [
        campaign
        for campaign in store.campaigns()
        if wanted is not None and campaign.study_id == Path(wanted).stem
    ]
    campaign = of_study[-1] if of_study else store.campaign(wanted or "last")
    try:
        campaign = campaign.extended(trials=trials, max_trials=max_trials)
    except ValueError as error:
        raise UsageError(str(error), where=campaign.id, hint="name a larger number") from error
    store.extend_campaign(campaign)
    return campaign


def _conduct(
    campaign: Campaign, store: Store, shown: Quiet, *, limit_s: float | None, wipe: frozenset[str], new: bool
) -> None:
    from fslab.campaign.campaign import run_campaign

    try:
        with shown:
            run_campaign(campaign, store, shown, budget_s=limit_s, wipe=wipe)
    except (BusyError, UnsafeError):
        if new and not store.count(campaign.id):  # somebody took the device after it was checked
            store.delete_campaign(campaign.id)
        raise


def _seconds(budget: str | None) -> float | None:
    from fslab.units import parse_duration

    if budget is None:
        return None
    try:
        seconds = parse_duration(budget)
    except ValueError as error:
        raise UsageError(str(error), where="--budget") from error
    if seconds <= 0:
        raise UsageError(
            f"'{budget}' must be greater than zero", where="--budget", hint="write 10m, or leave it out"
        )
    return seconds
