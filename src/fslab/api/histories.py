"""The history of a study: all of its campaigns in a store, with change points."""

from collections.abc import Sequence

from fslab.analysis import history as histories
from fslab.analysis.history_model import History
from fslab.api.study_campaigns import campaigns_of, check_choice, check_names
from fslab.store.campaign import Campaign
from fslab.store.store import Store


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
        by_host = _by_host(chosen)
        check_names("--machine", [machine], set(by_host))
        chosen = by_host[machine]
    past = [(campaign, store.trials(campaign.id, known=campaign.cells)) for campaign in chosen]
    check_choice(
        chosen[-1], (each for _, trials in past for each in trials), stacks=("--stack", stacks),
        workloads=workloads, metrics=metrics,
    )  # fmt: skip
    return histories.history(past, stacks=stacks, workloads=workloads, metrics=metrics)


def of_machines(store: Store, study: str | None) -> list[History]:
    """Return the history of a study on each machine that has campaigns of it, sorted by host name."""
    return [
        histories.history([(each, store.trials(each.id, known=each.cells)) for each in campaigns])
        for _, campaigns in sorted(_by_host(campaigns_of(store, study)).items())
    ]


def _by_host(campaigns: Sequence[Campaign]) -> dict[str, list[Campaign]]:
    """Return the campaigns by the host names of their machines. Leaves out machines without a name."""
    found: dict[str, list[Campaign]] = {}
    for campaign in campaigns:
        if name := campaign.machine.get("hostname"):
            found.setdefault(str(name), []).append(campaign)
    return found
