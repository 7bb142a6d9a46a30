"""``fslab run`` and ``clean``: run a study or finish a campaign, and remove what a killed one left behind."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fslab.cli import consent, fleet_run, run_options
from fslab.cli import report as reports
from fslab.cli.common import JsonOption, StoreOption, StudyChanges, console, open_store, print_json, say
from fslab.errors import InterruptedBySignal, ToolFailedError
from fslab.units import counted

if TYPE_CHECKING:
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store


WITH_ROOT = f"""
Without root, fslab measures directories and guests only. As root it also makes file systems on this machine itself,
compares them on the same image or disk (sudo {sys.argv[0]} run quick), and drops their caches before each trial."""


def run(
    study: str | None = None,
    *,
    changes: StudyChanges,
    repeats: run_options.Repeats,
    labels: run_options.Labels,
    fleet: run_options.FleetChoice,
    budget: str | None = None,
    wall_limit: str | None = None,
    resume: bool = False,
    allowed: consent.Allowed,
    quiet: bool = False,
    report: Path | None = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a study on this machine and print its results.

    Each cell (stack × workload) is repeated as often as the study says. With --precision it is repeated as often as
    needed: further trials go to the comparisons that are still open, and the 95 % CIs account for the interim analyses.

    In a study with claims, further trials go to the claims that are still open, within the budget; see: fslab claims.

    Trials are interleaved, and each is stored when it ends. Ctrl-C, a crash or a power cut loses at most the running
    trial: the results so far are shown, and --resume finishes the campaign. Invalid trials are repeated, at most as
    many as were planned. What a trial makes (images, loop devices, mounts) is removed afterwards; after a crash, by the
    next run or by: fslab clean.

    Only devices that the study names are overwritten, and those that are not blank only with --wipe. A device counts
    as blank only if it can be read completely within a minute and each 16 KiB of it are all zeros, or all ones (ff).

    Exit status: 0 if at least one trial completed (the table shows whether trials are valid), 6 if all failed, 128 + N
    after signal N (130 after Ctrl-C), otherwise that of the error: 2 command line or study, 3 unsafe, 4 not possible
    here, 5 no space, 7 store, 8 busy.

    Parameters:
        study STUDY: A study file, or the id of a shipped study (fslab list studies). With --resume: a campaign or a
            study; default: the last unfinished campaign of this machine, or with --trials its last campaign.
        budget TIME: Start no new trial after TIME, such as 10m. Default: 'budget' of the study; with --resume, that of
            the campaign, once more. Waiting for other campaigns does not count: see --wall-limit.
        wall_limit TIME: End after TIME on the clock: like --budget, but the time spent waiting for other campaigns on
            this machine counts too, and such a wait ends then.
        resume: Finish an interrupted campaign; stored trials are kept. With --trials N: extend a campaign, also a
            finished one, to N trials of each cell.
        quiet --quiet -q: Print one line per trial instead of the live display.
        report FILE: Write the HTML report to FILE, replacing it; default: $XDG_DATA_HOME/fslab/reports/CAMPAIGN.html.
    """
    reports.check_name(report)
    limit_s, wall_s = run_options.seconds(budget), run_options.seconds(wall_limit)
    if resume:
        run_options.check_resume(changes, repeats, labels)
    run_options.check_fleet(
        fleet, {"--resume": resume, **run_options.options_of(allowed), "--report": report}
    )
    if fleet.fleet:
        path = run_options.named(study, "run --fleet")
        loaded = changes.load(path, *repeats.settings())
        fleet_run.run(loaded, path, fleet, labels, limit_s=limit_s, store=store, as_json=as_json)
        return
    undo_leftovers(quiet=quiet or as_json)
    from fslab.api.study_campaigns import naming
    from fslab.campaign import launch
    from fslab.cli import progress

    agreed = consent.of_user(allowed=allowed.allow_commands, kernel=changes.kernel, modules=changes.modules)
    conditions = launch.RunConditions(consent=agreed, wipe=allowed.devices, tell=partial(say, err=True))
    with open_store(store, create=not resume) as opened:
        if resume:
            with naming(study or "last"):
                campaign = launch.resumable(
                    opened, study, conditions, trials=repeats.trials, max_trials=repeats.max_trials
                )
        else:
            path = run_options.named(study)
            loaded = changes.load(path, *repeats.settings())
            campaign = launch.of_study(
                loaded, path, budget_s=limit_s, name=labels.name, note=labels.note, tell=conditions.tell
            )
            launch.create(campaign, opened, conditions)
        shown = progress.shown(console(stderr=True), quiet=quiet, silent=as_json)
        try:
            with shown:
                launch.run(
                    campaign, opened, shown, conditions, budget_s=limit_s, wall_s=wall_s, new=not resume
                )
        except InterruptedBySignal as end:
            end.told = _show_so_far(opened.campaign(campaign.id), opened, as_json=as_json)
            raise
        _conclude(opened.campaign(campaign.id), opened, report, as_json=as_json)


def _show_so_far(campaign: Campaign, store: Store, *, as_json: bool) -> bool:
    """Print the results of the trials of a campaign that was interrupted, if it has any. Return whether they say how to
    finish it."""
    from fslab.api.results import CampaignResults
    from fslab.cli import results

    found = CampaignResults(campaign, store)
    if not found.report().counts.stored:
        return False
    if as_json:
        print_json(found.document())
    else:
        say("interrupted; the results so far:")
        results.show(found)
        sys.stdout.flush()
    return not as_json


def _conclude(campaign: Campaign, store: Store, report: Path | None, *, as_json: bool) -> None:
    """Write the report and print the results, the verdict last. Exit status 6 if all trials failed."""
    from fslab.api import explanations
    from fslab.api.results import CampaignResults
    from fslab.cli import results

    found = CampaignResults(campaign, store)
    if report is not None or not as_json:
        reports.conclude(found, report, quiet=as_json)
    if as_json:
        why = explanations.as_document(explanations.evidence_of(campaign, store))
        print_json({**found.document(), "why": why})
    else:
        if os.geteuid() != 0:
            say(WITH_ROOT)
        say(f"stored in {store.path}")
        results.show(found)
    counts = found.report().counts
    if counts.stored and counts.failed == counts.stored:
        raise typer.Exit(ToolFailedError.exit_code)


def undo_leftovers(*, quiet: bool) -> None:
    """Remove what earlier runs left behind, as far as possible."""
    from fslab import clean

    done, failures = clean()
    for error in failures:
        say(f"cannot remove what an earlier run left behind: {error}", err=True)
    if done and not quiet:
        say(f"removed what an earlier run left behind: {counted(len(done), 'object')}", err=True)


def clean(as_json: JsonOption = False) -> None:
    """Remove what a killed campaign left behind: tools, mounts, loop devices, images; and restore system settings.

    Only what fslab's own journals name is removed, and its directories for temporary files that no process uses;
    nothing of running campaigns. Results in the store are kept; finish the campaign with: fslab run --resume.
    """
    from fslab import clean as clean_all

    done, failures = clean_all()
    if as_json:
        undone = [{"campaign": name, "kind": entry.kind, "target": entry.target} for name, entry in done]
        print_json({"undone": undone, "failed": [str(error) for error in failures]})
    else:
        for campaign, entry in done:
            say(f"{campaign}: {entry.kind} {entry.target}")
        say(f"{len(done)} removed or restored" if done else "nothing to remove")
    if failures:
        raise failures[0]
