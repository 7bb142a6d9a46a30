"""The campaigns of a study in a store, those that are outdated, and checks of the names that a user chooses in them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from fslab.campaign.liveness import as_it_is, is_running
from fslab.errors import NotStoredError, StoreError, UsageError, nearest
from fslab.names import study_id
from fslab.store.campaign import EARLIEST, Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.study import shipped
from fslab.trial_record import TrialRecord


def is_study(wanted: str) -> bool:
    """Return whether ``wanted`` is the id of a shipped study, or the path of a study's file."""
    return wanted in shipped.ids() or "/" in wanted or wanted.endswith((".yaml", ".yml"))


@contextmanager
def naming(wanted: str) -> Iterator[None]:
    """Raise UsageError instead of NotStoredError if ``wanted`` is not a study, and so may be a mistyped one."""
    try:
        yield
    except NotStoredError as error:
        if is_study(wanted) or wanted.startswith("last"):
            raise
        campaigns = f"; campaign: {error.hint}" if "known: " in (error.hint or "") else ""
        hint = f"study: {nearest(wanted, shipped.ids())}{campaigns}"
        raise UsageError(f"no study or campaign '{wanted}'", hint=hint) from error


def last_campaign(store: Store, wanted: str) -> Campaign:
    """Return the last campaign of the study ``wanted`` (id or file), or the campaign ``wanted``.

    Raises StoreError for a study without a campaign, UsageError if there is neither.
    """
    try:
        with naming(wanted):
            return store.last_of(wanted)
    except NotStoredError as error:
        if not is_study(wanted):
            raise
        hint = f"run it: fslab run {wanted}"
        raise StoreError(f"no campaign of study '{study_id(wanted)}'", where=store.path, hint=hint) from error


def list_campaigns(store: Store) -> list[tuple[Campaign, int]]:
    """Return all campaigns of a store with their actual status and number of trials, oldest first."""
    found, counts = [], store.counts()
    for campaign in store.campaigns():
        with suppress(NotStoredError):  # deleted since the line above
            found.append((as_it_is(campaign, store), counts.get(campaign.id, 0)))
    return found


def campaigns_of(store: Store, study: str | None) -> list[Campaign]:
    """Return the campaigns of a study (id or file; None: that of the last campaign), oldest first.

    NotStoredError if there is none.
    """
    everything = store.campaigns()
    if not everything:
        hint = "run a study, or copy campaigns into this store: fslab store copy FROM TO"
        raise NotStoredError("no campaigns", where=store.path, hint=hint)
    wanted = study_id(study) if study else everything[-1].study_id
    chosen = [campaign for campaign in everything if campaign.study_id == wanted]
    if not chosen:
        known = {campaign.study_id for campaign in everything}
        raise NotStoredError(
            f"no campaign of study '{wanted}'", where=store.path, hint=nearest(wanted, known)
        )
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


def outdated(
    store: Store, *, older_than_s: float, keep: int, studies: Collection[str] = ()
) -> list[Campaign]:
    """Return the campaigns older than ``older_than_s``, oldest first; of ``studies`` (ids or files; empty: of all).

    Omits the ``keep`` newest of each study on each machine, campaigns with a name, and campaigns that may be running,
    on this machine or according to the store, and those whose clock was so wrong that their age is unknown.
    """
    wanted = {study_id(each) for each in studies}
    before = datetime.now(UTC) - timedelta(seconds=older_than_s)
    newer: Counter[tuple[str, object]] = Counter()
    found = []
    for campaign in reversed(store.campaigns()):
        if campaign.created < EARLIEST:
            continue
        series = (campaign.study_id, campaign.machine.get("hostname"))
        newer[series] += 1
        if (
            newer[series] > keep
            and campaign.created < before
            and (not wanted or campaign.study_id in wanted)
            and campaign.name is None
            and (campaign.status is not CampaignStatus.RUNNING or store.is_over_in_fleet(campaign.id))
            and not is_running(campaign.id, store)
        ):
            found.append(campaign)
    return found[::-1]
