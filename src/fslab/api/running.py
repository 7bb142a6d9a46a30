"""Runs campaigns: new ones of a study, and stored ones that were interrupted or get more trials."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from fslab.api.agreement import own_commands
from fslab.api.results import CampaignResults, ResultStore
from fslab.campaign import cleanup, launch
from fslab.campaign.observer import Observer
from fslab.cell import Cell
from fslab.errors import UsageError
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
    devices that may be overwritten although they contain data. ``allow_commands``: run the study's own commands;
    without it, a study with such commands is refused. ``observer`` is called before and after each trial.
    """
    cleanup.clean_all()
    loaded = study if isinstance(study, Study) else load(study)
    conditions = _conditions(wipe, allow_commands=allow_commands)
    path = f"{loaded.id}.yaml" if isinstance(study, Study) else str(study)
    campaign = launch.of_study(loaded, path, budget_s=budget_s, name=name, note=note)
    launch.create(campaign, store.store, conditions)
    limit_s = budget_s or loaded.limit_s
    launch.run(campaign, store.store, observer or Observer(), conditions, budget_s=limit_s, new=True)
    return store.campaign(campaign.id)


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
    """Run the remaining trials of a stored campaign (id, study or None: the last unfinished one). Returns its results.

    ``trials`` (with a precision, ``max_trials``) gives the campaign more trials of each cell, even if it is finished.
    The other arguments are those of ``run``. Raises UsageError on another machine or kernel than before.
    """
    cleanup.clean_all()
    more = trials is not None or max_trials is not None
    found = (
        launch.extended(store.store, campaign, trials=trials, max_trials=max_trials)
        if more
        else launch.unfinished(store.store, campaign)
    )
    conditions = _conditions(wipe, allow_commands=allow_commands)
    launch.check_resumable(found, store.store, conditions)
    launch.run(found, store.store, observer or Observer(), conditions, budget_s=budget_s, new=False)
    return store.campaign(found.id)


def _conditions(wipe: Collection[str], *, allow_commands: bool) -> launch.RunConditions:
    def refuse(cells: Sequence[Cell]) -> None:
        if lines := own_commands(cells):
            raise UsageError(
                f"the study runs its own commands: {'; '.join(lines[:3])}", where="tool: command",
                hint="read them; if you trust them: allow_commands=True",
            )  # fmt: skip

    agree: Callable[[Sequence[Cell]], object] = (lambda _: None) if allow_commands else refuse
    return launch.RunConditions(agree=agree, wipe=frozenset(wipe))
