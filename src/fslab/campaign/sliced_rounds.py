"""Runs a round in slices: one trial of each stack of a workload at once, and none pays for what another has put off.

What a tool has put off (dirty pages, commits) is written back while others have their turns: they pay for it, and its
own rate is too high. So each slice ends with a flush, in its own time, if the stacks share a disk and the workload
leaves work behind; elsewhere only if it is seen to reach the disk in the slices of others, because a flush changes what
is measured. What some stack does within a few slices is measured whole. ``trial`` defines what a trial does.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from fslab import workloads
from fslab.campaign import disks, time_slices
from fslab.campaign.prepared_states import Prepared, PreparedStates
from fslab.campaign.probing import Watch
from fslab.campaign.running_trial import RunningTrial
from fslab.campaign.time_slices import WorkLeftError
from fslab.campaign.trial import measure, watched
from fslab.campaign.trial_setup import Ready, set_up
from fslab.cell import Cell, TrialKey
from fslab.feasibility import medium_plan
from fslab.machine import tuning
from fslab.plan.expand import LEAST_SLICES, leaves_work
from fslab.probes import SnapshotMoment
from fslab.stopping_settings import StoppingRule, Until
from fslab.storage import Workspace, images
from fslab.system import freezer, memory, proc
from fslab.system.signals import Teardown, shielded
from fslab.trial_record import TrialRecord
from fslab.units import listed
from fslab.validity.trial_warnings.time import LEFT_MOST

LONGEST = 4  # times: tried at a load of 12 to 17 on two CPUs
ROUNDS = 8  # of each workload, which the budget pays for


@dataclass(kw_only=True, slots=True)
class SlicedRounds:
    """The rounds in slices of a campaign. ``machine``: the facts stored with trials. ``states``: what they share.
    ``whole``: runs one trial by itself. ``told``: gets a line for the user when later rounds change.
    ``round_s``: runs may become longer as long as a round takes no more than that."""

    workspace: Workspace
    machine: Callable[[], Mapping[str, Any]]
    states: PreparedStates
    whole: Callable[[Cell, TrialKey], TrialRecord]
    told: Callable[[str], object]
    round_s: float = 0.0
    _left: set[str] = field(default_factory=set)  # workloads whose slices were seen to leave work to others
    _whole: set[str] = field(default_factory=set)  # workloads that a stack was seen to do within a few slices
    _longer: dict[str, int] = field(
        default_factory=dict
    )  # how many times as long the next run of a workload is

    def run(self, cells: Sequence[Cell], key: TrialKey) -> list[TrialRecord]:
        """Run one trial of each of these cells, which have one workload. If they are seen to leave work to others,
        they begin again, with a flush; if they are too short for slices, one after the other. Each record has the time
        of all this."""
        work = cells[0].workload.model_dump_json()
        if work in self._whole:
            return [self.whole(cell, key) for cell in cells]
        leaves = leaves_work(workloads.parsed(cells[0].workload).traits())
        drain = work in self._left or (leaves and share_a_disk(cells, self.workspace.images))
        begun_s = time.monotonic()
        try:
            records = self._once(cells, key, drain=drain)
        except WorkLeftError as left:
            self._left.add(work)
            self.told(
                f"{cells[0].workload.name} leaves work to the slices of others on {listed(left.stacks)}: it begins "
                "again, and each slice ends with a flush"
            )
            spent_s = (time.monotonic() - begun_s) / len(cells)
            records = [_with_time(record, spent_s) for record in self._once(cells, key, drain=True)]
        if few := [record.cell.stack.name for record in records if took_few_slices(record)]:
            self._whole.add(work)
            self.told(
                f"{cells[0].workload.name} takes less than {LEAST_SLICES} slices on {listed(few)}: from this round on, "
                "it is measured whole, one stack after the other"
            )
            return [_with_time(self.whole(record.cell, key), record.duration_s) for record in records]
        return records

    def _once(self, cells: Sequence[Cell], key: TrialKey, *, drain: bool) -> list[TrialRecord]:
        work = cells[0].workload.model_dump_json()
        longer = self._longer.get(work, 1)
        turns = [self.states.begin(cell, key, "host") for cell in cells]
        records = run_in_slices(
            cells, key, self.workspace, machine=self.machine(), drain=drain,
            prepared=list(map(self.states.prepared, turns)), longer=longer,
            left_most=inf if drain else LEFT_MOST,
        )  # fmt: skip
        if workloads.parsed(cells[0].workload).traits().working_set_bytes is not None:
            self._longer[work] = max(longer, longer_runs(records, longer, self.round_s))
            if longer == 1 and self._longer[work] > 1:
                self.told(
                    f"{cells[0].workload.name}: a round takes longer than its slices; runs become up to {LONGEST} "
                    "times as long"
                )
        return list(map(self.states.end, turns, records))


def run_in_slices(
    cells: Sequence[Cell],
    key: TrialKey,
    workspace: Workspace,
    *,
    machine: Mapping[str, Any],
    drain: bool,
    prepared: Sequence[Prepared | None],
    longer: int = 1,
    left_most: float = inf,
) -> list[TrialRecord]:
    """Run one trial of each cell at the same time, their tools in turns of the cells' ``slice_s``; return the records.

    All stacks are built first. A trial that fails ends; the others go on. ``drain``: after each slice, what it has left
    in the page cache is written back, in its own time. ``prepared``: for each cell, as for ``run_trial``.
    ``longer``: as in a ``Job``. ``left_most``: as in ``take_turns``.
    Each record has its share of the time that all took. Raises like ``run_trial`` and ``take_turns``.
    """
    trials = [
        RunningTrial(
            cell=cell, key=key, workspace=replace(workspace, turn=cell.turn, commands=[]), machine=machine,
            prepared=state, turns=len(cells), longer=longer,
        )
        for cell, state in zip(cells, prepared, strict=True)
    ]  # fmt: skip
    # Drawn, because those that are started later run, at the end, without the others.
    order = random.Random(f"{key.seed}:starts").sample(trials, len(trials))  # noqa: S311 - no secret
    with Teardown() as everything:
        everything.enter_context(tuning.tuned(cells[0].tuned, workspace.journal))
        takers = []
        for trial in order:
            everything.enter_context(trial.guarded())
            everything.enter_context(trial.undo)
            with trial.guarded():
                ready = set_up(trial)
                takers.append((trial, ready, watched(trial, ready)))
        with shielded():  # each makes a control group at once
            turns = [everything.enter_context(_turn(*taker, drain=drain)) for taker in takers]
        time_slices.take_turns(
            turns, slice_s=min(cell.slice_s or inf for cell in cells), seed=key.seed, left_most=left_most
        )
        for turn, (trial, ready, watch) in zip(turns, takers, strict=True):
            with trial.guarded():
                measure(trial, ready, watch, _completed(trial, turn), turn.timeline())
    return [trial.record() for trial in trials]


def _turn(trial: RunningTrial, ready: Ready, watch: Watch, *, drain: bool) -> time_slices.SlicedRun:
    """Return the run of the tool as one of several that take turns."""
    workspace, up = trial.workspace, ready.up
    return time_slices.SlicedRun(
        name=f"{freezer.PREFIX}{workspace.campaign}{workspace.turn}",
        will_make=partial(workspace.will_make, "group"),
        stack=trial.cell.stack.name,
        start=lambda: trial.undo.enter_context(
            proc.running(
                ready.command(ready.commands.run),
                cwd=up.work,
                env=workspace.environment("run"),
                accounted=True,
            )
        ),
        devices=up.watched,
        directory=up.work,
        look=up.room_check(),
        drain=up.flush if drain else None,
        limit_s=trial.cell.time_limit_s,
        ended=lambda: watch.snapshot(SnapshotMoment.END),
        halt=lambda halted: disks.halt(trial.cell, workspace, halted=halted),
    )


def _completed(trial: RunningTrial, turn: time_slices.SlicedRun) -> proc.Completed:
    """Return the tool's end, with the time that it ran as its duration. Raises why it was given up, if it was."""
    if turn.error is not None:
        raise turn.error
    done = turn.running.completed()
    trial.workspace.record("run", done)
    return replace(done, duration_s=sum(end - begin for begin, end in turn.ran))


def _with_time(record: TrialRecord, spent_s: float) -> TrialRecord:
    """Return the record with the time that an attempt before it took."""
    return record.model_copy(
        update={
            "started": record.started - timedelta(seconds=spent_s),
            "duration_s": record.duration_s + spent_s,
        }
    )


def took_few_slices(record: TrialRecord) -> bool:
    """Return whether a tool has done a set amount of work within fewer slices than its figures need.

    With a set time, slices are few if they are long, as on a busy machine; whole, that time would be too short.
    """
    slices = record.provenance.slices
    return slices is not None and slices.asked_s is None and slices.count < LEAST_SLICES


def longest_round_s(stopping: StoppingRule, budget_s: float | None, workloads: int) -> float:
    """Return how long a round in slices may take: so long that the budget pays for ``ROUNDS`` of each workload. 0,
    which lengthens none, unless fslab chooses their number: the study sets the time of its trials.

    With fewer, the quantile of t grows faster than the figures of longer rounds get better.
    """
    if stopping.precision is None or stopping.until is Until.CLAIMS:
        return 0.0
    return inf if budget_s is None else budget_s / (ROUNDS * workloads)


def longer_runs(records: Sequence[TrialRecord], longer: int, round_s: float) -> int:
    """Return how many times as long the next runs are, so that the slices of a round take about as long as the rest of
    it, at most ``LONGEST``. ``longer``: those of these records. ``round_s``: the most time for a round. 1 if they have
    no set time, or one failed.

    With as much time for slices as for the rest, the standard error is at most √2 times the least possible in the time,
    whichever varies more, slices or rounds (from Kalibera & Jones, ISMM 2013).
    """
    known = [record.provenance.slices for record in records]
    timed = [(slices, slices.asked_s) for slices in known if slices is not None and slices.asked_s]
    if len(timed) < len(records):
        return 1
    sliced_s = sum(slices.ran_s - slices.started_s for slices, _ in timed)
    rest_s = sum(record.duration_s for record in records) - sliced_s
    longest = min(
        record.cell.time_limit_s / 2 / asked_s for record, (_, asked_s) in zip(records, timed, strict=True)
    )
    if sliced_s <= 0:
        return 1
    wanted = longer * min(rest_s, round_s - rest_s) / sliced_s
    return max(1, round(min(wanted, longest, LONGEST)))


def share_a_disk(cells: Sequence[Cell], directory: Path) -> bool:
    """Return whether the images of two of these cells lie on one disk, not in memory. ``directory``: for images."""
    places = [
        Path(place)
        for cell in cells
        for place in medium_plan(cell, directory).space
        if place != images.MEMORY
    ]
    existing = [next(path for path in (place, *place.parents) if path.exists()) for place in places]
    counted = Counter(path.stat().st_dev for path in existing if not memory.holds(path))
    return max(counted.values(), default=0) > 1
