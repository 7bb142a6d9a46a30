"""Compares the stacks of a study across machines, from all of its campaigns in a store."""

from collections.abc import Collection, Sequence

from fslab.analysis import fleet
from fslab.analysis.fleet_model import Fleet
from fslab.api.study_campaigns import campaigns_of, check_choice
from fslab.errors import StoreError, UsageError
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
    chosen = campaigns_of(store, study)
    wanted = chosen[-1].study_id
    measured = [(campaign, store.trials(campaign.id)) for campaign in chosen]
    if not any(trials for _, trials in measured):
        raise StoreError(
            f"no trial of study '{wanted}'", where=store.path, hint=f"run it: fslab run {wanted}"
        )
    check_choice(
        chosen[-1], (each for _, trials in measured for each in trials),
        stacks=("--against", filter(None, [against])), workloads=workloads, metrics=metrics,
    )  # fmt: skip
    found = fleet.fleet(measured, against=against, workloads=workloads, metrics=metrics)
    if not found.rows and not found.partial:
        raise UsageError("nothing to compare", where=wanted, hint="choose a study with two stacks or more")
    return found


def of_campaigns(store: Store, wanted: Collection[str]) -> Fleet | None:
    """Compare the stacks of these campaigns of one study with the first stack; None if there is nothing to compare."""
    chosen = [campaign for campaign in store.campaigns() if campaign.id in wanted]
    found = fleet.fleet([(campaign, store.trials(campaign.id)) for campaign in chosen])
    return found if found.rows or found.partial else None
