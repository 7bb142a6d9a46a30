"""From a study or a stored campaign to trials. Steps, in this order: create, check, ask for consent, store, run.

Must not use the terminal. Nothing is stored before all earlier steps succeed, so a refusal leaves no trace.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fslab import feasibility
from fslab.campaign import schedule, trial_loop
from fslab.campaign.consent import Consent, changed_files, places
from fslab.campaign.observer import Observer
from fslab.cell import Cell
from fslab.claims import testable
from fslab.errors import BusyError, StoreError, UnsafeError, UsageError
from fslab.machine import facts
from fslab.machine.planned_machine import here
from fslab.names import study_id
from fslab.plan.expand import expand
from fslab.plan.plan import notices
from fslab.stopping_settings import MOST_TRIALS, StoppingRule
from fslab.storage import print_nothing
from fslab.storage.parsed_stack import parsed_stack
from fslab.store.campaign import Campaign, CampaignSettings, CampaignStatus
from fslab.store.database_errors import checked_contents
from fslab.store.store import Store
from fslab.study.model import Study
from fslab.system import paths
from fslab.units import first_of
from fslab.workloads import parsed


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConditions:
    """The conditions under which a campaign may run.

    ``consent``: to what the study brings and is executed. ``wipe``: the devices that the user named for wiping.
    ``tell`` receives a line before each long step.
    """

    consent: Consent = field(default_factory=Consent)
    wipe: frozenset[str] = frozenset()
    tell: Callable[[str], None] = print_nothing


def of_study(
    study: Study,
    path: str,
    *,
    budget_s: float | None = None,
    name: str | None = None,
    note: str | None = None,
    tell: Callable[[str], None] = print_nothing,
) -> Campaign:
    """Return a campaign of a study read from ``path``; not stored. UnsupportedError if no machine can build a stack.

    ``budget_s`` None: the study's. ``tell`` gets a line if the budget cannot decide any claim, and if this machine
    cannot test all claims.
    """
    reads_files = bool(study.files or (study.published and study.published.figures))
    settings = CampaignSettings(
        set=study.overrides, scale=study.scale, budget_s=budget_s or study.limit_s, files=study.files,
        directory=str(Path(path).absolute().parent) if reads_files else None, claims=study.claims,
    )  # fmt: skip
    cells = cells_of(study)
    campaign = new(
        cells, study.stopping, settings, study_id=study.id, study_title=study.title, study_source=study.text,
        seed=study.seed, name=name, note=note,
    )  # fmt: skip
    impossible = feasibility.foresee(cells, paths.images())[0] if study.for_claims else {}
    possible = [cell for cell in cells if cell.id not in impossible]
    left_out = schedule.left_out(study, possible)
    measured = [cell for cell in possible if cell.id not in left_out]
    about = schedule.claimed_cells(study, measured, campaign.machine.get("memory_bytes"))
    if said := schedule.too_small(about, settings.budget_s):
        tell(said)
    found = testable.foresee(study.claims if about else (), cells, impossible, here().facts)
    if any(one.prospect is not testable.Prospect.TESTABLE for one in found):
        tell(f"claims: {testable.words(found)}")
    for said in schedule.beside_claims(len(possible), len(left_out), len(about)):
        tell(said)
    return campaign


def cells_of(study: Study) -> tuple[Cell, ...]:
    """Return the cells of a study on this machine."""
    return expand(study, feasibility.all_resolved, feasibility.fitting)


def new(
    cells: Iterable[Cell],
    stopping: StoppingRule,
    settings: CampaignSettings,
    *,
    study_id: str,
    study_title: str,
    study_source: str,
    seed: int,
    name: str | None = None,
    note: str | None = None,
) -> Campaign:
    """Return a campaign of this machine and user, which begins now; not stored."""
    return Campaign(
        id=trial_loop.new_id(),
        study_id=study_id,
        study_title=study_title,
        study_source=study_source,
        settings=settings.model_copy(update={"stopping": stopping, "user_id": os.geteuid()}),
        seed=seed,
        cells=tuple(cells),
        trials=stopping.trials,
        machine=facts.gather(),
        created=datetime.now(UTC),
        name=name,
        note=note,
    )


def unfinished(store: Store, wanted: str | None) -> Campaign:
    """Return the last unfinished campaign of this machine, of a study if given (id or file), or the campaign named.

    ``wanted``: a study's id or file, a campaign's id or name, or None. StoreError if there is none.
    """
    study = None if wanted is None else study_id(wanted)
    of_study = [campaign for campaign in store.campaigns() if study in {None, campaign.study_id, "last"}]
    found = [campaign for campaign in of_study if campaign.status is not CampaignStatus.FINISHED]
    if here := started_here(found):
        return check_stored(here[-1], store)
    if found:
        raise _elsewhere(found, store)
    if wanted in {None, "last"}:
        raise StoreError("no campaign is unfinished", where=store.path, hint="start one: fslab run quick")
    if of_study:
        raise StoreError(
            f"every campaign of '{study}' is finished",
            where=store.path,
            hint=f"start one: fslab run {wanted}",
        )
    return check_stored(store.campaign(wanted), store)


def started_here(found: Iterable[Campaign]) -> list[Campaign]:
    """Return those of the campaigns that can continue here: they were started on this machine, with this kernel."""
    now = facts.gather()
    return [campaign for campaign in found if not facts.identity_changes(now, campaign.machine)]


def _elsewhere(found: Sequence[Campaign], store: Store) -> StoreError:
    """Return the error that all unfinished campaigns belong to other machines or kernels; name the last ones."""
    now = facts.gather()
    differing = [
        f"{campaign.id} ({'; '.join(facts.identity_changes(now, campaign.machine)[:2])})"
        for campaign in reversed(found)
    ]
    what = "each unfinished campaign was started on another machine or with another kernel"
    return StoreError(
        f"{what}: {first_of(differing, 3)}", where=store.path, hint="resume it there, or start a new one here"
    )


def extended(
    store: Store, wanted: str | None, *, trials: int | None = None, max_trials: int | None = None
) -> Campaign:
    """Return a campaign with more trials of each cell. Does not store it.

    ``wanted``: a study (its last campaign of this machine), a campaign, or None (the last of this machine); finished or
    not. UsageError if that is not more.
    """
    of_study = store.campaigns(None if wanted is None else study_id(wanted))
    here = started_here(of_study)
    # If all are of other machines, the last one: its check says what differs.
    campaign = (here or of_study or [store.campaign(wanted or "last")])[-1]
    check_stored(campaign, store)
    try:
        return campaign.extended(trials=trials, max_trials=max_trials)
    except ValueError as error:
        rule = campaign.stopping
        option = "--trials" if rule.precision is None else "--max-trials"
        raise UsageError(
            str(error),
            where=campaign.id,
            hint=f"fslab run --resume {campaign.id} {option} N, with N from {rule.most + 1} to {MOST_TRIALS}",
        ) from error


def check_stored(campaign: Campaign, store: Store) -> Campaign:
    """Return the campaign if a study can describe its cells; else StoreError, before anything of them is shown."""
    store.check_cells(campaign)
    with checked_contents(store.path):
        for cell in campaign.cells:
            feasibility.check_plugins(cell)
            parsed_stack(cell.stack)
            parsed(cell.workload)
    return campaign


def create(campaign: Campaign, store: Store, conditions: RunConditions) -> None:
    """Check that a new campaign can and may run here, store it, and tell what its workloads do otherwise than asked."""
    _admit(campaign, conditions)
    store.create_campaign(campaign)
    for line in notices(campaign.cells):
        conditions.tell(f"note: {line}")


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
        campaign = unfinished(store, wanted)
    else:
        campaign = extended(store, wanted, trials=trials, max_trials=max_trials)
    for line in (*places(campaign.cells), *changed_files(campaign)):
        conditions.tell(line)
    check_resumable(campaign, store, conditions)
    return campaign


def check_resumable(campaign: Campaign, store: Store, conditions: RunConditions) -> None:
    """Check that a stored campaign can and may continue here. Stores nothing."""
    store.check_cells(campaign)
    trial_loop.check_same_machine(campaign)
    feasibility.check_named(campaign.cells, conditions.wipe)
    conditions.consent.check_stored(campaign.cells, store)
    _admit(campaign, conditions)


def run(
    campaign: Campaign,
    store: Store,
    observer: Observer,
    conditions: RunConditions,
    *,
    budget_s: float | None = None,
    wall_s: float | None = None,
    new: bool,
) -> CampaignStatus:
    """Run the remaining trials. Deletes a ``new`` campaign without trials if its device was taken after the check, or
    if fslab cannot write to its own directories.

    ``budget_s`` None: the campaign's budget, as a whole, whatever earlier runs spent. ``wall_s`` also counts the time
    spent waiting for other campaigns.
    """
    limit_s = campaign.settings.budget_s if budget_s is None else budget_s
    try:
        return trial_loop.run_campaign(
            campaign,
            store,
            observer,
            budget_s=limit_s,
            wall_s=wall_s,
            wipe=conditions.wipe,
            consent=conditions.consent,
        )
    except (BusyError, UnsafeError, OSError):
        if new and not store.count(campaign.id):
            store.delete_campaign(campaign.id)
        raise


def _admit(campaign: Campaign, conditions: RunConditions) -> None:
    feasibility.check(campaign.id, campaign.cells, conditions.wipe, conditions.tell)
    conditions.consent.require(campaign.cells)
