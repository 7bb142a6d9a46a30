"""Replications: the page of a study with its claims beside what a campaign found, and the table of all studies.

``run_each`` runs their studies unattended for hours. It skips finished studies and resumes interrupted ones, so that
the same command can be repeated.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from fslab import safe_output
from fslab.analysis.further_trials import spent_s
from fslab.api import explanations
from fslab.api.claims import campaigns_like, judged_study
from fslab.campaign import launch, liveness
from fslab.campaign.consent import places
from fslab.campaign.observer import Observer
from fslab.claims import replication
from fslab.claims.claim_words import level_words, summary
from fslab.claims.model import Verdicts
from fslab.claims.replication import ReplicationPage, StudyResult
from fslab.errors import FslabError, StoreError, UsageError
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.study import load, shipped
from fslab.study.model import Study
from fslab.system import signals


class Replication(NamedTuple):
    """The verdicts of a campaign's study, their page, and its row in the table of all studies."""

    verdicts: Verdicts
    page: ReplicationPage
    result: StudyResult


def last_campaigns(store: Store) -> list[Campaign]:
    """Return the last campaign with claims of each shipped study that has some, in the order of the studies.

    Raises StoreError if the store has none.
    """
    campaigns = {each.study_id: each for each in store.campaigns() if each.settings.claims}
    found = [campaigns[study] for study in shipped.with_claims() if study in campaigns]
    if not found:
        raise StoreError("no campaign of a study with claims", where=store.path, hint="run them first: --run")
    return found


def replication_of(campaign: Campaign, store: Store, *, alone: bool = False) -> Replication:
    """Evaluate the claims of a campaign's study and return their page. ``alone``: without the other ones of its study.

    Raises UsageError if it has no claims.
    """
    verdicts, study = judged_study(campaign, store, () if alone else campaigns_like(campaign, store))
    if not verdicts.claims:
        raise UsageError(
            f"the study '{study.id}' has no claims", where=campaign.id, hint="name a study with claims"
        )
    trials = [store.trials(each) for each in (*verdicts.others, campaign.id)]
    result = replication.result_of(verdicts, trials)
    page = ReplicationPage(
        study=study.id, title=study.title, source=study.source, campaign=campaign.id,
        measured=verdicts.conditions or "", rows=replication.rows_of(verdicts),
        conditions=verdicts.nearness, effort=replication.effort_words(result),
        level=level_words(verdicts), known_limits=verdicts.known_limits, summary=summary(verdicts.claims),
        reasons=explanations.of_claims(verdicts, explanations.evidence_of(campaign, store)),
    )  # fmt: skip
    return Replication(verdicts, page, result)


def write(made: Sequence[Replication], directory: Path) -> None:
    """Write STUDY.md of each study, and README.md with the table of all; other studies keep their lines.

    Raises UsageError if a file cannot be read or written.
    """
    safe_output.make_directory(directory)
    for _, page, _ in made:
        text = "\n".join(replication.lines(page))
        safe_output.replace(directory / page.file_name, f"{text}\n")
    readme = directory / "README.md"
    try:
        before = readme.read_text("utf-8", "replace") if readme.is_file() else ""
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(readme)) from error
    linked = (directory / replication.CLAIMS_PAGE).is_file()
    index = "\n".join(replication.index([each.result for each in made], before, linked=linked))
    safe_output.replace(readme, f"{index}\n")


Watched = Callable[[], AbstractContextManager[Observer]]
_OVER = {CampaignStatus.FINISHED, CampaignStatus.BUDGET_SPENT}


def run_each(
    studies: Sequence[str],
    store: Store,
    conditions: launch.RunConditions,
    watched: Watched,
    then: Callable[[Campaign], object],
) -> list[str]:
    """Run each study without a finished campaign of this machine, with its defaults; call ``then`` with the campaign.

    ``watched`` returns a context manager for the observer of one campaign. Returns the studies that failed, each with
    the reason; the other studies continue. An interruption ends all.
    """
    failed = []
    for number, name in enumerate(studies, start=1):
        conditions.tell(f"study {number} of {len(studies)}: {name}")
        try:
            with signals.kept():
                then(_run_study(name, store, conditions, watched))
        except FslabError as error:
            failed.append(f"{name}: {error}")
        except Exception:  # a bug in one study must not end the others
            failed.append(f"{name}: {traceback.format_exc()}")
        else:
            continue
        conditions.tell(failed[-1])
    return failed


def _run_study(name: str, store: Store, conditions: launch.RunConditions, watched: Watched) -> Campaign:
    study = load.load(name)
    # On a shared store, another machine's campaign neither replaces a run here, nor can continue here.
    known = launch.started_here(one for one in store.campaigns() if _is_default(one, study))
    if known and liveness.as_it_is(known[-1], store).status in _OVER:
        conditions.tell(f"finished already: campaign {known[-1].id}; to run it again: fslab run {name}")
        return known[-1]
    # Nobody watches, and what another user of the database stored as a campaign of the study can have other cells.
    wanted = {cell.id for cell in launch.cells_of(study)}
    resumed = [one for one in known if {cell.id for cell in one.cells} == wanted]
    if resumed:
        campaign = resumed[-1]
        for line in places(campaign.cells):
            conditions.tell(line)
        launch.check_resumable(campaign, store, conditions)
    else:
        campaign = launch.of_study(study, name, tell=conditions.tell)
        launch.create(campaign, store, conditions)
    with watched() as shown:
        launch.run(campaign, store, shown, conditions, budget_s=_left_s(campaign, store), new=not resumed)
    return store.campaign(campaign.id)


def _is_default(campaign: Campaign, study: Study) -> bool:
    """Return whether a campaign is of this version of the study, without changes on the command line."""
    settings = campaign.settings
    same = (campaign.study_id, campaign.study_source) == (study.id, study.text)
    return same and not settings.set and settings.budget_s == study.limit_s


def _left_s(campaign: Campaign, store: Store) -> float | None:
    """Return the remaining budget of a resumed campaign, in seconds; None without a budget."""
    budget_s = campaign.settings.budget_s
    if budget_s is None:
        return None
    return max(0.0, budget_s - spent_s([*store.trials(campaign.id)]))
