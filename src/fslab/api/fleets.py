"""Compares the stacks of a study across machines, from all of its campaigns in a store."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from fslab.analysis import fleet
from fslab.analysis.fleet_model import Fleet
from fslab.errors import StoreError, UsageError, nearest
from fslab.store.store import Store


def of_study(
    store: Store,
    study: str | None = None,
    *,
    against: str | None = None,
    workloads: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> Fleet:
    """Compare each stack of a study (id or file; None: that of the last campaign) with one stack, across machines.

    ``against``: a stack or file system; default: the first of the plan. Raises UsageError for names that the study does
    not have, StoreError if the store has no campaign of it.
    """
    everything = store.campaigns()
    if not everything:
        raise StoreError(
            "no campaigns",
            where=store.path,
            hint="run a study, or copy campaigns into this store: fslab store copy FROM TO",
        )
    wanted = Path(study).stem if study else everything[-1].study_id
    chosen = [campaign for campaign in everything if campaign.study_id == wanted]
    if not chosen:
        known = {campaign.study_id for campaign in everything}
        raise StoreError(f"no campaign of study '{wanted}'", where=store.path, hint=nearest(wanted, known))
    measured = [(campaign, store.trials(campaign.id)) for campaign in chosen]
    if not any(trials for _, trials in measured):
        raise StoreError(
            f"no trial of study '{wanted}'", where=store.path, hint=f"run it: fslab run {wanted}"
        )
    cells = chosen[-1].cells
    _check(
        "--against", filter(None, [against]),
        {name for cell in cells for name in (cell.stack.name, cell.stack.filesystem) if name},
    )  # fmt: skip
    _check("--workload", workloads, {cell.workload.name for cell in cells})
    figures = {name for _, trials in measured for trial in trials for name in (*trial.metrics, *trial.probes)}
    _check("--metric", metrics, figures)
    found = fleet.fleet(measured, against=against, workloads=workloads, metrics=metrics)
    if not found.rows and not found.partial:
        raise UsageError("nothing to compare", where=wanted, hint="choose a study with two stacks or more")
    return found


def of_campaigns(store: Store, wanted: Collection[str]) -> Fleet | None:
    """Compare the stacks of these campaigns of one study with the first stack; None if there is nothing to compare."""
    chosen = [campaign for campaign in store.campaigns() if campaign.id in wanted]
    found = fleet.fleet([(campaign, store.trials(campaign.id)) for campaign in chosen])
    return found if found.rows or found.partial else None


def _check(option: str, wanted: Iterable[str], known: set[str]) -> None:
    for name in wanted:
        if name not in known:
            raise UsageError(f"unknown name '{name}'", where=option, hint=nearest(name, known))
