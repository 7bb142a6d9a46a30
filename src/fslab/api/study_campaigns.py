"""The campaigns of a study in a store, and checks of the names of what a user chooses in them."""

from collections.abc import Iterable

from fslab.errors import StoreError, UsageError, nearest
from fslab.names import study_id
from fslab.record import TrialRecord
from fslab.store.campaign import Campaign
from fslab.store.store import Store


def campaigns_of(store: Store, study: str | None) -> list[Campaign]:
    """Return the campaigns of a study (id or file; None: that of the last campaign), oldest first.

    StoreError if there is none.
    """
    everything = store.campaigns()
    if not everything:
        raise StoreError(
            "no campaigns",
            where=store.path,
            hint="run a study, or copy campaigns into this store: fslab store copy FROM TO",
        )
    wanted = study_id(study) if study else everything[-1].study_id
    chosen = [campaign for campaign in everything if campaign.study_id == wanted]
    if not chosen:
        known = {campaign.study_id for campaign in everything}
        raise StoreError(f"no campaign of study '{wanted}'", where=store.path, hint=nearest(wanted, known))
    return chosen


def check_choice(
    campaign: Campaign, trials: Iterable[TrialRecord], *, stacks: tuple[str, Iterable[str]],
    workloads: Iterable[str], metrics: Iterable[str],
) -> None:  # fmt: skip
    """Raise UsageError for a name that neither the cells of the campaign nor the trials have.

    ``stacks``: an option, and the stacks or file systems that it names.
    """
    cells = campaign.cells
    names = {name for cell in cells for name in (cell.stack.name, cell.stack.filesystem) if name}
    check_names(*stacks, names)
    check_names("--workload", workloads, {cell.workload.name for cell in cells})
    check_metrics(metrics, trials)


def check_metrics(wanted: Iterable[str], trials: Iterable[TrialRecord]) -> None:
    check_names("--metric", wanted, {name for each in trials for name in (*each.metrics, *each.probes)})


def check_names(option: str, wanted: Iterable[str], known: set[str]) -> None:
    """Raise UsageError for a name that is not known."""
    for name in wanted:
        if name not in known:
            raise UsageError(f"unknown name '{name}'", where=option, hint=nearest(name, known))
