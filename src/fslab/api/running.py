"""Runs campaigns: new ones of a study, and stored ones that were interrupted or get more trials.

``run`` and ``resume`` are ``fslab.run`` and ``fslab.resume``: the steps of ``campaign.launch`` in one call each. The
command takes the same steps, and asks the user between them.
"""

from collections.abc import Collection
from pathlib import Path

from fslab.api.results import CampaignResults, ResultStore
from fslab.campaign import cleanup, launch
from fslab.campaign.consent import Consent
from fslab.campaign.launch import RunConditions
from fslab.campaign.observer import Observer
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
    made = launch.of_study(loaded, path, budget_s=budget_s, name=name, note=note)
    launch.create(made, store.store, conditions)
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
    found = launch.resumable(store.store, campaign, conditions, trials=trials, max_trials=max_trials)
    launch.run(found, store.store, observer or Observer(), conditions, budget_s=budget_s, new=False)
    return store.campaign(found.id)


def _consent(allowed: bool) -> Consent:
    return Consent(ask=lambda _: None) if allowed else Consent()
