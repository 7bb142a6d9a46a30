"""Runs campaigns: new ones of a study, and stored ones that were interrupted or get more trials.

``run`` and ``resume`` do all steps. ``create``, ``resumable`` and ``launch.run`` are the single steps, for callers that
show progress or ask the user in between.
"""

from collections.abc import Collection
from pathlib import Path

from fslab.api.results import CampaignResults, ResultStore
from fslab.campaign import cleanup, launch
from fslab.campaign.consent import Consent, changed_files, places
from fslab.campaign.launch import RunConditions
from fslab.campaign.observer import Observer
from fslab.plan.plan import notices
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.study.load import load
from fslab.study.model import Study


def run(
    study: Study | str | Path,
    store: ResultStore,
    *,
    budget_s: float | None = None,
    name: str | None = None,
    note: str | None = None,
    wipe: Collection[str] = (),
    allow_commands: bool = False,
    observer: Observer | None = None,
) -> CampaignResults:
    """Run a study on this machine and return its results; blocks until the campaign ends. Most media need root.

    Each trial is stored in ``store`` immediately. ``budget_s``: start no trial after this number of seconds. ``wipe``:
    devices that may be overwritten although they contain data. ``allow_commands``: run the study's own commands,
    kernels and modules; without it, a study with such programs is refused. ``observer`` is called before and after
    each trial.
    """
    cleanup.clean_all()
    loaded = study if isinstance(study, Study) else load(study)
    conditions = RunConditions(consent=_consent(allow_commands), wipe=frozenset(wipe))
    path = f"{loaded.id}.yaml" if isinstance(study, Study) else str(study)
    made = create(loaded, path, store.store, conditions, budget_s=budget_s, name=name, note=note)
    launch.run(made, store.store, observer or Observer(), conditions, new=True)
    return store.campaign(made.id)


def resume(
    store: ResultStore,
    campaign: str | None = None,
    *,
    trials: int | None = None,
    max_trials: int | None = None,
    budget_s: float | None = None,
    wipe: Collection[str] = (),
    allow_commands: bool = False,
    observer: Observer | None = None,
) -> CampaignResults:
    """Run the remaining trials of a stored campaign and return its results.

    ``campaign``: an id, a study, or None: the last unfinished campaign of this machine.
    ``trials`` (with a precision, ``max_trials``) gives the campaign more trials of each cell, even if it is finished.
    ``budget_s`` None: the campaign's budget, once more. The other arguments are those of ``run``. Raises UsageError on
    another machine or kernel than before.
    """
    cleanup.clean_all()
    conditions = RunConditions(consent=_consent(allow_commands), wipe=frozenset(wipe))
    found = resumable(store.store, campaign, conditions, trials=trials, max_trials=max_trials)
    launch.run(found, store.store, observer or Observer(), conditions, budget_s=budget_s, new=False)
    return store.campaign(found.id)


def create(
    study: Study,
    path: str,
    store: Store,
    conditions: RunConditions,
    *,
    budget_s: float | None = None,
    name: str | None = None,
    note: str | None = None,
) -> Campaign:
    """Store a new campaign of a study that was read from ``path``."""
    campaign = launch.of_study(study, path, budget_s=budget_s, name=name, note=note, tell=conditions.tell)
    launch.create(campaign, store, conditions)
    for line in notices(campaign.cells):
        conditions.tell(f"note: {line}")
    return campaign


def resumable(
    store: Store,
    wanted: str | None,
    conditions: RunConditions,
    *,
    trials: int | None = None,
    max_trials: int | None = None,
) -> Campaign:
    """Return a stored campaign that may continue, with more trials of each cell if ``trials`` or ``max_trials`` is
    given. Tells what it writes to, and which of its files have changed."""
    if trials is None and max_trials is None:
        campaign = launch.unfinished(store, wanted)
    else:
        campaign = launch.extended(store, wanted, trials=trials, max_trials=max_trials)
    for line in (*places(campaign.cells), *changed_files(campaign)):
        conditions.tell(line)
    launch.check_resumable(campaign, store, conditions)
    return campaign


def _consent(allowed: bool) -> Consent:
    return Consent(ask=lambda _: None) if allowed else Consent()
