"""The history of a study: all of its campaigns in a store, with change points."""

from collections.abc import Sequence

from fslab.analysis import history as histories
from fslab.analysis.history_model import History
from fslab.api.study_campaigns import campaigns_of, check_choice, check_names
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
    chosen = campaigns_of(store, study)
    if machine is not None:
        check_names("--machine", [machine], _hosts(chosen))
        chosen = [campaign for campaign in chosen if campaign.machine.get("hostname") == machine]
    past = [(campaign, store.trials(campaign.id)) for campaign in chosen]
    check_choice(
        chosen[-1], (each for _, trials in past for each in trials), stacks=("--stack", stacks),
        workloads=workloads, metrics=metrics,
    )  # fmt: skip
    return histories.history(past, stacks=stacks, workloads=workloads, metrics=metrics)


def of_machines(store: Store, study: str | None) -> list[History]:
    """Return the history of a study on each machine that has campaigns of it, sorted by host name."""
    return [of_study(store, study, machine=name) for name in sorted(_hosts(campaigns_of(store, study)))]


def _hosts(campaigns: Sequence[Campaign]) -> set[str]:
    """Return the host names of the campaigns' machines. A machine may have none."""
    return {name for campaign in campaigns if (name := campaign.machine.get("hostname"))}
