"""Runs a campaign: the trials of a plan, one after another. Stores each at once, and leaves nothing behind.

Decides which trial is next and when to stop. Must not measure: ``trial_dispatch`` runs the trials.
"""

import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from fslab import feasibility
from fslab.analysis.further_trials import InterimResult
from fslab.analysis.usable_trials import GIVE_UP_AFTER, is_failed, is_invalid
from fslab.campaign import cleanup, liveness, machine_lock
from fslab.campaign.consent import Consent
from fslab.campaign.liveness import is_running
from fslab.campaign.observer import Observer
from fslab.campaign.schedule import Schedule
from fslab.campaign.sliced_rounds import longest_round_s
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import Cell, MachineSpec, TrialKey
from fslab.claims import testable
from fslab.claims.scope import Scope
from fslab.errors import FslabError, InterruptedBySignal, StoreError, StoreLostError, UsageError
from fslab.feasibility import Reasons
from fslab.machine import facts
from fslab.machine.planned_machine import here
from fslab.plan.expand import tool_seed
from fslab.plan.shared_states import groups
from fslab.stopping_settings import Until
from fslab.storage import Workspace
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.study.load import stored_figures
from fslab.system import signals
from fslab.trial_record import Provenance, Status, TrialRecord
from fslab.units import format_duration


@dataclass(kw_only=True, slots=True)
class TrialHistory:
    """The trials so far. By cell id: durations of the trials that did not fail, and the number of failures in a row."""

    records: list[TrialRecord] = field(default_factory=list)
    durations: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def enter(self, record: TrialRecord) -> None:
        self.records.append(record.model_copy(update={"raw": {}}))
        failed = record.status in {Status.FAILED, Status.UNSUPPORTED}
        cell = record.cell.id
        self.failures[cell] = self.failures[cell] + 1 if failed else 0
        if record.status is Status.UNSUPPORTED:
            self.failures[cell] = GIVE_UP_AFTER  # the machine does not change
        if not failed:
            self.durations[cell].append(record.duration_s)

    def given_up(self, cell: Cell) -> bool:
        """Return whether the cell failed so often in a row that another trial would only cost time."""
        return self.failures[cell.id] >= GIVE_UP_AFTER

    def expected_s(self, cell: Cell) -> float:
        """Return the expected duration of the cell's next trial: the mean of its trials, else of all; else 0."""
        known = self.durations[cell.id] or [value for values in self.durations.values() for value in values]
        return fmean(known) if known else 0.0


def new_id(now: datetime | None = None) -> str:
    """Return a campaign id. Ids sort by time, and differ for campaigns that start in the same second."""
    return f"{now or datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def run_campaign(
    campaign: Campaign,
    store: Store,
    observer: Observer,
    *,
    budget_s: float | None,
    wall_s: float | None = None,
    wipe: frozenset[str] = frozenset(),
    consent: Consent | None = None,
) -> CampaignStatus:
    """Run the remaining trials of a stored campaign and return its status.

    ``consent``: to what the campaign brings and is executed; None: to nothing. ``budget_s`` does not count the time
    spent waiting for other campaigns, ``wall_s`` does.

    If the campaign plans more trials than the store has (``Campaign.extended``), the new plan is stored once nothing
    else can refuse the run. Raises before anything is created if a stack cannot be built safely. An interruption sets
    the stored status to ``interrupted`` and undoes everything; the trial in flight is not stored.
    """
    check_same_machine(campaign)
    (consent or Consent()).require(campaign.cells)
    # None until we hold the campaign's lock: before that, another process may run it and set its status.
    status: CampaignStatus | None = None
    reasons = feasibility.check(campaign.id, campaign.cells, wipe, observer.note)
    try:
        with (
            cleanup.opened_workspace(campaign.id, wipe) as workspace,
            store.running(campaign.id),
            store.patient(campaign.id, observer.note),
        ):
            status = CampaignStatus.FAILED
            if campaign.stopping.until is Until.CLAIMS:
                campaign = campaign.with_run(datetime.now(UTC), budget_s)
            if campaign.settings != store.campaign(campaign.id).settings:
                store.extend_campaign(campaign)
            store.set_campaign_status(campaign.id, CampaignStatus.RUNNING)
            _store_impossible(campaign, store, observer, reasons)
            status = _run_trials(campaign, store, observer, workspace, budget_s, wall_s, frozenset(reasons))
            # Before the journal is released: a reader that finds no process must find the final status.
            store.set_campaign_status(campaign.id, status)
    except InterruptedBySignal:
        _leave(campaign, store, observer, CampaignStatus.INTERRUPTED)
        raise
    except BaseException:
        if status is not None:
            _leave(campaign, store, observer, status)
        raise
    return status


def _leave(campaign: Campaign, store: Store, observer: Observer, status: CampaignStatus) -> None:
    """Store the final status, without retries, unless another process runs the campaign. A failure is only noted: it
    must not hide why the campaign ended."""
    try:
        if not is_running(campaign.id, store):
            store.set_campaign_status(campaign.id, status)
    except StoreError as error:
        observer.note(f"the store could not record that the campaign is {status.value} ({error.what})")


def _store_impossible(campaign: Campaign, store: Store, observer: Observer, reasons: Reasons) -> None:
    """Store one unsupported trial for each impossible cell, and note each reason once."""
    known = store.finished(campaign.id)
    for cell in campaign.cells:
        if cell.id in reasons and (cell.id, 0) not in known:
            store.add_trial(_unsupported(cell, campaign.id, reasons[cell.id], campaign.machine))
    for text in feasibility.by_cause(reasons.values()):
        observer.note(f"not possible here: {text}")


def _run_trials(
    campaign: Campaign,
    store: Store,
    observer: Observer,
    workspace: Workspace,
    budget_s: float | None,
    wall_s: float | None,
    without: frozenset[str],
) -> CampaignStatus:
    liveness.store_unstored(campaign, store, observer.note)
    history = TrialHistory()
    for record in store.trials(campaign.id):
        history.enter(record)
    workspace.lost |= lost_slots(history.records)
    memory_bytes = campaign.machine.get("memory_bytes")
    scope = Scope(cells=campaign.cells, memory_bytes=memory_bytes)
    name, files = f"{campaign.study_id}.yaml", campaign.settings.files
    for_claims = campaign.stopping.until is Until.CLAIMS
    printed = stored_figures(campaign.study_source, name, files, scope) if for_claims else {}
    schedule = Schedule(
        cells=campaign.cells, stopping=campaign.stopping, seed=campaign.seed, claims=campaign.settings.claims,
        printed=printed, memory_bytes=memory_bytes,
        without=without | _untestable(campaign, without, history.records),
        budget_s=campaign.settings.budget_s, runs=campaign.settings.runs,
    )  # fmt: skip
    run = _CampaignRun(
        campaign=campaign,
        store=store,
        observer=observer,
        workspace=workspace,
        history=history,
        schedule=schedule,
        budget_s=budget_s,
        wall_s=wall_s,
        finished=store.finished(campaign.id),
        machines=TrialMachines(
            workspace=workspace,
            groups=groups(campaign.cells),
            told=observer.note,
            round_s=longest_round_s(campaign.stopping, budget_s, len(schedule.together)),
        ),
        begun=time.monotonic(),
    )
    done = sum(cell not in without for cell, _ in run.finished)
    passed = resume(schedule, history.records, budget_s)
    cells = {cell.id for _, cell in schedule.trials}
    observer.campaign_started(campaign, done=done, total=len(schedule.trials), cells=len(cells))
    if passed is not None:
        observer.looked(passed, total=len(schedule.trials))
    try:
        return run.run_until_done()
    finally:
        run.tell_waits()


def _untestable(
    campaign: Campaign, without: frozenset[str], records: Sequence[TrialRecord]
) -> frozenset[str]:
    """Return the cells that only claims need which cannot be tested here, in a campaign that repeats trials for claims.

    Not those that have trials, by which a resumed campaign continues. ``without``: cells that cannot be measured.
    """
    if campaign.stopping.until is not Until.CLAIMS:
        return frozenset()
    possible = [cell for cell in campaign.cells if cell.id not in without]
    left_out = testable.excluded(campaign.settings.claims, possible, here().facts)
    return frozenset(left_out.keys() - {record.cell.id for record in records})


def resume(
    schedule: Schedule, records: Sequence[TrialRecord], budget_s: float | None
) -> InterimResult | None:
    """Plan what the stored trials lead to, and return the last analysis that they have passed.

    What earlier runs spent does not count, pauses included: a resumed campaign has the time given to this run.
    """
    passed = schedule.catch_up(records)
    schedule.begin_run(records, budget_s)
    return passed


@dataclass(kw_only=True, slots=True)
class _CampaignRun:
    """A campaign that this process runs. ``waited_s``: time spent waiting for the machine lock, which ``wall_s``
    counts and ``budget_s`` does not."""

    campaign: Campaign
    store: Store
    observer: Observer
    workspace: Workspace
    history: TrialHistory
    schedule: Schedule
    budget_s: float | None
    finished: set[tuple[str, int]]
    machines: TrialMachines
    begun: float
    waited_s: float = 0.0
    wall_s: float | None = None

    def run_until_done(self) -> CampaignStatus:
        """Run the planned trials, and those that are planned after each look. Returns the campaign's status."""
        while True:
            status, planned = self.run_planned(), len(self.schedule.trials)
            if status is not CampaignStatus.FINISHED:
                return status
            self._spend_error_within_budget()
            look = self.schedule.look(self.history.records)
            self._tell(look, more=len(self.schedule.trials) - planned)
            if len(self.schedule.trials) == planned:
                return CampaignStatus.FINISHED

    def _spend_error_within_budget(self) -> None:
        """Before the first look, plan the looks for as many blocks as the budget pays for: what is meant for later ones
        would only make the intervals wider."""
        most = self.schedule.affordable(self.history.records)
        if most is not None:
            stopping = self.campaign.stopping.model_copy(update={"planned_most": most})
            self.campaign = self.campaign.with_settings(stopping=stopping)
            self.store.extend_campaign(self.campaign)
            self.schedule.replan(stopping)

    def _tell(self, look: InterimResult | None, more: int) -> None:
        """Report a look, or that ``more`` trials replace invalid ones, to the observer."""
        total = len(self.schedule.trials)
        if look is None:
            if more:
                invalid = sum(map(is_invalid, self.history.records))
                self.observer.replaces(invalid=invalid, more=more, total=total)
        elif look.questions:
            self.observer.looked(look, total=total)
        else:
            self.observer.note(
                f"nothing to compare: fewer than two stacks have results after {look.blocks} trials each"
            )

    def tell_waits(self) -> None:
        """Report how long the trials waited in all: each single wait may be too short to be reported."""
        if self.waited_s >= 1:
            self.observer.note(f"trials waited {format_duration(self.waited_s)} for those of other campaigns")

    def run_planned(self) -> CampaignStatus:
        """Run the planned trials that are not stored. Returns ``finished``, or ``budget_spent`` if the budget ended."""
        for number, (block, cell) in enumerate(self.schedule.trials):
            if not self._is_due(cell, block):
                continue
            together = self._together(number, cell, block)
            if why := self._over(sum(map(self.history.expected_s, together))):
                self.observer.note(why)
                return CampaignStatus.BUDGET_SPENT
            try:
                self._run(together, block, self._coming(number, block))
            except machine_lock.WaitedTooLongError as error:
                self.observer.note(f"{self._wall_words()}: still waiting for {error.whom}")
                return CampaignStatus.BUDGET_SPENT
        return CampaignStatus.FINISHED

    def _over(self, expected_s: float) -> str | None:
        """Return which limit another trial of this duration would exceed; None: no limit."""
        wall_s = time.monotonic() - self.begun
        if self.budget_s is not None and wall_s - self.waited_s + expected_s > self.budget_s:
            return self._budget_words(self.budget_s)
        if self.wall_s is not None and wall_s + expected_s > self.wall_s:
            return self._wall_words()
        return None

    def _budget_words(self, budget_s: float) -> str:
        whole_s = self.campaign.settings.budget_s
        if not budget_s and whole_s:  # ``fslab replicate --run`` resumes with what is left
            return f"nothing is left of the budget of {format_duration(whole_s)}"
        return f"this run's budget of {format_duration(budget_s)} is spent"

    def _wall_words(self) -> str:
        waited = f", {format_duration(self.waited_s)} of it spent waiting" if self.waited_s >= 1 else ""
        return f"the limit of {format_duration(self.wall_s or 0.0)} on the clock is reached{waited}"

    def _is_due(self, cell: Cell, block: int) -> bool:
        return (cell.id, block) not in self.finished and not self.history.given_up(cell)

    def _together(self, number: int, cell: Cell, block: int) -> list[Cell]:
        """Return the cells that run with trial ``number``: if it is in slices, what is left of its workload."""
        if cell.slice_s is None:
            return [cell]
        own = next(group for group in self.schedule.together if cell in group)
        later = self.schedule.trials[number:]
        return [each for other, each in later if other == block and each in own and self._is_due(each, block)]

    def _coming(self, number: int, block: int) -> frozenset[str]:
        """Return the cells whose trials come after trial ``number`` in its block."""
        later = self.schedule.trials[number + 1 :]
        return frozenset(cell.id for other, cell in later if other == block and self._is_due(cell, block))

    def _run(self, cells: Sequence[Cell], block: int, coming: frozenset[str]) -> None:
        """Run one trial of each cell, at the same time if there are several, and store the records."""
        for cell in cells:
            self.observer.trial_started(cell, block)
        key = TrialKey(campaign=self.campaign.id, block=block, seed=tool_seed(self.campaign.seed, block))
        until = None if self.wall_s is None else self.begun + self.wall_s
        with signals.kept(), machine_lock.held(self.workspace, self.observer, until=until) as waited_s:
            self.waited_s += waited_s
            if len(cells) > 1:
                records = self.machines.run_together(cells, key, coming - {cell.id for cell in cells})
            else:
                records = [self.machines.run(cells[0], key, coming)]
        for record in records:
            self._store(record)

    def _store(self, record: TrialRecord) -> None:
        cell = record.cell
        try:
            self.store.add_trial(record)
        except StoreLostError as error:
            raise liveness.keep_unstored(record, error) from error
        self.finished.add((cell.id, record.key.block))
        self.history.enter(record)
        self.observer.trial_ended(record)
        if self.history.given_up(cell):
            unsupported = record.status is Status.UNSUPPORTED
            why = "is not supported here" if unsupported else f"failed {GIVE_UP_AFTER} times in a row"
            self.observer.note(f"{cell.workload.name} on {cell.stack.name} {why}: not tried again")


def lost_slots(records: Iterable[TrialRecord]) -> set[str]:
    """Return the slots of the file systems that earlier runs of the campaign kept between these trials: now lost."""
    return {record.cell.slot for record in records if record.cell.fresh.lasts and not is_failed(record)}


def check_same_machine(campaign: Campaign) -> None:
    """Raise UsageError if resuming the campaign would mix trials of different machines."""
    differing = facts.identity_changes(facts.gather(), campaign.machine)
    if differing:
        raise UsageError(
            f"the campaign was started on another machine ({'; '.join(differing)})",
            where=campaign.id,
            hint="start a new campaign, and compare the two: fslab compare",
        )


def _unsupported(cell: Cell, campaign: str, error: FslabError, machine: dict[str, Any]) -> TrialRecord:
    """Return the record of an impossible cell: block 0, duration 0. A guest that never ran has no facts."""
    facts = dict(machine) if cell.stack.machine.type == MachineSpec().type else {}
    return TrialRecord(
        key=TrialKey(campaign=campaign, block=0, seed=0), cell=cell, status=Status.UNSUPPORTED,
        failure=error.failure.value, error=str(error), started=datetime.now(UTC), duration_s=0.0,
        provenance=Provenance(machine=facts),
    )  # fmt: skip
