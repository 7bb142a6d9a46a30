"""Runs studies with their defaults, one after the other, unattended for hours.

Skips finished studies and resumes interrupted ones, so the same command can be repeated.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from fslab.analysis.campaign_time import spent_s
from fslab.campaign import launch, liveness
from fslab.campaign.consent import places
from fslab.campaign.observer import Observer
from fslab.errors import FslabError
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.study import load
from fslab.study.model import Study
from fslab.system import signals

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
                then(_campaign(name, store, conditions, watched))
        except FslabError as error:
            failed.append(f"{name}: {error}")
        except Exception:  # a bug in one study must not end the others
            failed.append(f"{name}: {traceback.format_exc()}")
        else:
            continue
        conditions.tell(failed[-1])
    return failed


def _campaign(name: str, store: Store, conditions: launch.RunConditions, watched: Watched) -> Campaign:
    study = load.load(name)
    # On a shared store, another machine's campaign neither replaces a run here, nor can continue here.
    known = launch.started_here(one for one in store.campaigns() if _is_default(one, study))
    if known and liveness.as_it_is(known[-1], store).status in _OVER:
        conditions.tell(f"finished already: campaign {known[-1].id}; to run it again: fslab run {name}")
        return known[-1]
    if known:
        campaign = known[-1]
        for line in places(campaign.cells):
            conditions.tell(line)
        launch.check_resumable(campaign, store, conditions)
    else:
        campaign = launch.of_study(study, name, tell=conditions.tell)
        launch.create(campaign, store, conditions)
    with watched() as shown:
        launch.run(campaign, store, shown, conditions, budget_s=_left_s(campaign, store), new=not known)
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
