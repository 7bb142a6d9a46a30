"""A campaign: run the trials of a plan in interleaved order, store each at once, and leave nothing behind.

Decides which trial is next and when to stop. How one trial is measured is ``trial``'s matter.
"""

import secrets
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from fslab import feasibility
from fslab.analysis.usability import GIVE_UP_AFTER, is_invalid
from fslab.campaign import machine_lock, unstored_trial
from fslab.campaign import workspace as workspaces
from fslab.campaign.guests import Guests
from fslab.campaign.observer import Observer
from fslab.campaign.schedule import Schedule
from fslab.cell import Cell, MachineSpec, TrialKey
from fslab.errors import FslabError, InterruptedBySignal, StoreError, StoreLostError, UsageError
from fslab.feasibility import Reasons
from fslab.machine import facts
from fslab.plan.order import tool_seed
from fslab.record import Provenance, Status, TrialRecord
from fslab.storage import Workspace
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.system import signals
from fslab.units import format_duration


@dataclass(kw_only=True, slots=True)
class TrialHistory:
    """What is known of the trials so far: all of them, and durations and failures in a row by cell."""

    records: list[TrialRecord] = field(default_factory=list)
    durations: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def enter(self, record: TrialRecord) -> None:
        self.records.append(record.model_copy(update={"raw": {}}))
        failed = record.status in {Status.FAILED, Status.UNSUPPORTED}
        cell = record.cell.id
        self.failures[cell] = self.failures[cell] + 1 if failed else 0
        if record.status is Status.UNSUPPORTED:
            self.failures[cell] = GIVE_UP_AFTER  # the machine stays what it is
        if not failed:
            self.durations[cell].append(record.duration_s)

    def given_up(self, cell: Cell) -> bool:
        """Whether the cell failed so often in a row that trying again would only cost time."""
        return self.failures[cell.id] >= GIVE_UP_AFTER

    def expected_s(self, cell: Cell) -> float:
        """How long its next trial will take, by its own trials or else by all; 0 before the first."""
        known = self.durations[cell.id] or [value for values in self.durations.values() for value in values]
        return fmean(known) if known else 0.0


def new_id(now: datetime | None = None) -> str:
    """A campaign's id: sorts by time, and differs between two started in the same second."""
    return f"{now or datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def run_campaign(
    campaign: Campaign,
    store: Store,
    observer: Observer,
    *,
    budget_s: float | None,
    wipe: frozenset[str] = frozenset(),
) -> CampaignStatus:
    """Run what is left of a stored campaign and return how far it came. What it was given more than is stored
    (``Campaign.extended``) is stored once nothing else can refuse the run.

    Raises before anything is made if a stack cannot be built safely; an interruption leaves the campaign
    ``interrupted`` in the store, everything undone, and the trial in flight unstored.
    """
    check_same_machine(campaign)
    # None until it is ours: another process may run it, and then what becomes of it is that one's to say.
    status: CampaignStatus | None = None
    reasons = feasibility.check(campaign.id, campaign.cells, wipe, observer.note)
    try:
        with workspaces.opened(campaign.id, wipe) as workspace, store.patient(campaign.id, observer.note):
            status = CampaignStatus.FAILED
            if campaign.stopping != store.campaign(campaign.id).stopping:
                store.extend_campaign(campaign)
            store.set_campaign_status(campaign.id, CampaignStatus.RUNNING)
            _store_impossible(campaign, store, observer, reasons)
            status = _run_trials(campaign, store, observer, workspace, budget_s, frozenset(reasons))
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
    """Store how it ended, tried once: why it ended is what a person must know."""
    try:
        store.set_campaign_status(campaign.id, status)
    except StoreError as error:
        observer.note(f"the store could not record that the campaign is {status.value} ({error.what})")


def _store_impossible(campaign: Campaign, store: Store, observer: Observer, reasons: Reasons) -> None:
    """Once for each cell, and one note for each reason."""
    known = store.finished(campaign.id)
    for cell in campaign.cells:
        if cell.id in reasons and (cell.id, 0) not in known:
            store.add_trial(_unsupported(cell, campaign.id, reasons[cell.id], campaign.machine))
    for text in dict.fromkeys(str(error) for error in reasons.values()):
        observer.note(text)


def _run_trials(
    campaign: Campaign,
    store: Store,
    observer: Observer,
    workspace: Workspace,
    budget_s: float | None,
    without: frozenset[str],
) -> CampaignStatus:
    unstored_trial.store_kept(campaign, store, observer.note)
    history = TrialHistory()
    for record in store.trials(campaign.id):
        history.enter(record)
    schedule = Schedule(
        cells=campaign.cells, stopping=campaign.stopping, seed=campaign.seed, claims=campaign.claims,
        memory_bytes=campaign.machine.get("memory_bytes"), without=without,
        budget_s=campaign.settings.get("budget_s"),
    )  # fmt: skip
    run = _CampaignRun(
        campaign=campaign,
        store=store,
        observer=observer,
        workspace=workspace,
        history=history,
        schedule=schedule,
        budget_s=budget_s,
        finished=store.finished(campaign.id),
        guests=Guests(workspace=workspace, machine=facts.gather()),
        begun=time.monotonic(),
    )
    done = sum(cell not in without for cell, _ in run.finished)
    passed = schedule.catch_up(history.records)
    # What a resumed campaign was given before counts no more: it has the time that it is given now.
    schedule.budget_s = (
        None if budget_s is None else budget_s + sum(one.duration_s for one in history.records)
    )
    observer.campaign_started(campaign, done=done, total=len(schedule.trials), stored=history.records)
    if passed is not None:
        observer.looked(passed, total=len(schedule.trials))
    while True:
        status = run.run_planned()
        if status is not CampaignStatus.FINISHED:
            return status
        planned = len(schedule.trials)
        look = schedule.look(history.records)
        if look is not None and look.questions:
            observer.looked(look, total=len(schedule.trials))
        elif look is None and len(schedule.trials) > planned:
            invalid = sum(map(is_invalid, history.records))
            observer.replaces(
                invalid=invalid, more=len(schedule.trials) - planned, total=len(schedule.trials)
            )
        elif look is not None:
            observer.note(f"nothing to compare: no two stacks have figures after {look.blocks} trials each")
        if len(schedule.trials) == planned:
            return CampaignStatus.FINISHED


@dataclass(kw_only=True, slots=True)
class _CampaignRun:
    """A campaign on its way."""

    campaign: Campaign
    store: Store
    observer: Observer
    workspace: Workspace
    history: TrialHistory
    schedule: Schedule
    budget_s: float | None
    finished: set[tuple[str, int]]
    guests: Guests
    begun: float
    waited_s: float = 0.0

    def run_planned(self) -> CampaignStatus:
        """Run what is planned and not stored yet: ``finished``, or ``budget_spent`` if that came first."""
        for block, cell in self.schedule.trials:
            if (cell.id, block) in self.finished or self.history.given_up(cell):
                continue
            elapsed_s = time.monotonic() - self.begun - self.waited_s
            if self.budget_s is not None and elapsed_s + self.history.expected_s(cell) > self.budget_s:
                self.observer.note(f"the budget of {format_duration(self.budget_s)} is spent")
                return CampaignStatus.BUDGET_SPENT
            self._run(cell, block)
        return CampaignStatus.FINISHED

    def _run(self, cell: Cell, block: int) -> None:
        self.observer.trial_started(cell, block)
        key = TrialKey(campaign=self.campaign.id, block=block, seed=tool_seed(self.campaign.seed, block))
        with signals.kept(), machine_lock.held(self.workspace, self.observer) as waited_s:
            self.waited_s += waited_s
            record = self.guests.run(cell, key)
        try:
            self.store.add_trial(record)
        except StoreLostError as error:
            raise unstored_trial.keep(record, error) from error
        self.finished.add((cell.id, block))
        self.history.enter(record)
        self.observer.trial_ended(record)
        if self.history.given_up(cell):
            self.observer.note(
                f"{cell.workload.name} on {cell.stack.name} failed {GIVE_UP_AFTER} times in a row: not tried again"
            )


def check_same_machine(campaign: Campaign) -> None:
    """UsageError when a resumed campaign would mix trials of unlike machines."""
    differing = facts.identity_changes(facts.gather(), campaign.machine)
    if differing:
        raise UsageError(
            f"the campaign was started on another machine ({'; '.join(differing)})", where=campaign.id,
            hint="start a new campaign, and compare the two: fslab compare",
        )  # fmt: skip


def _unsupported(cell: Cell, campaign: str, error: FslabError, machine: dict[str, Any]) -> TrialRecord:
    """What is stored of it: one trial that took no time, in the first block. A guest that never ran has no facts."""
    facts = dict(machine) if cell.stack.machine == MachineSpec() else {}
    return TrialRecord(
        key=TrialKey(campaign=campaign, block=0, seed=0), cell=cell, status=Status.UNSUPPORTED,
        failure=error.failure.value, error=str(error), started=datetime.now(UTC), duration_s=0.0,
        provenance=Provenance(machine=facts),
    )  # fmt: skip
