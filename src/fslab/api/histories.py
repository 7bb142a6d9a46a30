"""The history of a study: all of its campaigns in a store, with change points."""

from collections.abc import Sequence
from pathlib import Path

from fslab.analysis import history as histories
from fslab.analysis.history_model import History
from fslab.errors import StoreError, UsageError, nearest
from fslab.report.changes import changes, summary
from fslab.store.campaign import Campaign
from fslab.store.store import Store

__all__ = ["changes", "of_machines", "of_study", "summary"]


def of_study(
    store: Store,
    study: str | None,
    stacks: Sequence[str] = (),
    workloads: Sequence[str] = (),
    metrics: Sequence[str] = (),
    machine: str | None = None,
) -> History:
    """Return the history of a study (id or file; None: that of the last campaign), campaign by campaign.

    ``machine``: a host name; None: that of the study's last campaign.
    """
    chosen = _campaigns(store, study)
    if machine is not None:
        hosts = {str(campaign.machine.get("hostname")) for campaign in chosen}
        _check("--machine", [machine], hosts)
        chosen = [campaign for campaign in chosen if campaign.machine.get("hostname") == machine]
    past = [(campaign, store.trials(campaign.id)) for campaign in chosen]
    cells = chosen[-1].cells
    _check(
        "--stack",
        stacks,
        {name for cell in cells for name in (cell.stack.name, cell.stack.filesystem) if name},
    )
    _check("--workload", workloads, {cell.workload.name for cell in cells})
    figures = {name for _, trials in past for trial in trials for name in (*trial.metrics, *trial.probes)}
    _check("--metric", metrics, figures)
    return histories.history(past, stacks=stacks, workloads=workloads, metrics=metrics)


def of_machines(store: Store, study: str | None) -> list[History]:
    """Return the history of a study on each machine that has campaigns of it, sorted by host name."""
    names = {campaign.machine.get("hostname") for campaign in _campaigns(store, study)}
    return [of_study(store, study, machine=name) for name in sorted(filter(None, names))]


def _campaigns(store: Store, study: str | None) -> list[Campaign]:
    wanted = Path(study).stem if study else store.campaign().study_id
    everything = store.campaigns()
    chosen = [campaign for campaign in everything if campaign.study_id == wanted]
    if not chosen:
        known = {campaign.study_id for campaign in everything}
        raise StoreError(f"no campaign of study '{wanted}'", where=store.path, hint=nearest(wanted, known))
    return chosen


def _check(option: str, wanted: Sequence[str], known: set[str]) -> None:
    for name in wanted:
        if name not in known:
            raise UsageError(f"unknown name '{name}'", where=option, hint=nearest(name, known))
