"""``fslab run``: run a study, or finish one that was interrupted; ends with the table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fslab.cli.common import JsonOption, SetOption, StoreOption, console, print_json

if TYPE_CHECKING:
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store


WITH_ROOT = """
You are not root. With root, fslab also makes file systems afresh, compares ext4, XFS and btrfs side by side on
the same image or disk (sudo fslab run quick), and drops all caches before each trial."""


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
        str | None, typer.Option(metavar="TIME", help="Begin no trial after this time, such as 10m.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish an interrupted campaign; what is measured is kept.")
    ] = False,
    wipe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DEVICE",
            help="This very device of the study may be overwritten although it carries data. Repeatable.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and touch nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a study on this machine and print what it found.

    Trials are interleaved and each is stored at once, so Ctrl-C, a crash or a power cut loses at most the one
    in flight: --resume finishes the rest. Whatever is made on the way (images, loop devices, mounts) is gone
    afterwards, and after a crash with the next run or with: fslab clean.

    No device is touched unless the study names it, and none that carries data unless --wipe names it too.
    """
    from fslab.cli import results

    if dry_run:
        _print_plan(study, settings, as_json)
        return
    _undo_leftovers(quiet=quiet or as_json)
    from fslab.store.store import Store

    with Store.open(store) as opened:
        campaign = (
            _to_resume(opened, study) if resume else _created(opened, study, settings, budget, wipe or [])
        )
        _conduct(campaign, opened, budget=budget, wipe=frozenset(wipe or []), quiet=quiet or as_json)
        campaign = opened.campaign(campaign.id)
        if as_json:
            print_json(results.as_document(campaign, opened))
        else:
            results.show(campaign, opened)
            typer.echo(f"stored in {opened.path}; again with: fslab results {campaign.id}")
            if os.geteuid() != 0:
                typer.echo(WITH_ROOT)


def _print_plan(study: str | None, settings: list[str] | None, as_json: bool) -> None:
    from fslab.cli import plan

    plan.plan(_named(study), settings, as_json)


def _named(study: str | None) -> str:
    from fslab.errors import UsageError
    from fslab.study import shipped

    if study is None:
        raise UsageError(
            "which study?", hint=f"fslab run {shipped.ids()[0]}; there are: {', '.join(shipped.ids())}"
        )
    return study


def _undo_leftovers(*, quiet: bool) -> None:
    from fslab.campaign import undo

    done, failures = undo.clean_all()
    for error in failures:
        console(stderr=True).print(f"could not undo what an earlier run left behind: {error}", markup=False)
    if done and not quiet:
        console(stderr=True).print(f"undone: {len(done)} things that an earlier run left behind")


def _created(
    store: Store, name: str | None, settings: list[str] | None, budget: str | None, wipe: list[str]
) -> Campaign:
    """A new campaign of a study, checked to be possible and stored."""
    from datetime import UTC, datetime

    from fslab.campaign import campaign as campaigns
    from fslab.campaign import preflight
    from fslab.machine import facts
    from fslab.plan.expand import expand
    from fslab.store.campaign import Campaign
    from fslab.study import load

    study = load.load(_named(name), settings or [])
    campaign = Campaign(
        id=campaigns.new_id(),
        study_id=study.id,
        study_title=study.title,
        study_source=study.text,
        settings={"set": list(study.overrides), "budget_s": _seconds(budget) or study.budget_s},
        seed=study.seed,
        cells=expand(study),
        trials=study.trials,
        machine=facts.gather(),
        created=datetime.now(UTC),
    )
    preflight.check(campaign.id, campaign.cells, frozenset(wipe))
    store.create_campaign(campaign)
    return campaign


def _to_resume(store: Store, wanted: str | None) -> Campaign:
    """The last unfinished campaign, or that of a study, or the one named."""
    from fslab.errors import StoreError
    from fslab.store.campaign import CampaignStatus

    unfinished = [
        campaign
        for campaign in store.campaigns()
        if campaign.status is not CampaignStatus.FINISHED and wanted in {None, campaign.study_id, "last"}
    ]
    if unfinished:
        return unfinished[-1]
    if wanted is None:
        raise StoreError("no campaign is unfinished", where=store.path, hint="start one: fslab run quick")
    return store.campaign(wanted)


def _conduct(
    campaign: Campaign, store: Store, *, budget: str | None, wipe: frozenset[str], quiet: bool
) -> None:
    from fslab.campaign.campaign import conduct
    from fslab.cli import progress

    screen = console(stderr=True)
    shown: Any = (
        progress.Quiet() if quiet else progress.Bar(screen) if screen.is_terminal else progress.Lines(screen)
    )
    limit = _seconds(budget) if budget else campaign.settings.get("budget_s")
    with shown:
        conduct(campaign, store, shown, budget_s=limit, wipe=wipe)


def _seconds(budget: str | None) -> float | None:
    from fslab.errors import UsageError
    from fslab.units import parse_duration

    if budget is None:
        return None
    try:
        return parse_duration(budget)
    except ValueError as error:
        raise UsageError(str(error), where="--budget") from error
