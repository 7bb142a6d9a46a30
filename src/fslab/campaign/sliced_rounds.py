"""Runs a round in slices: one trial of each stack of a workload at once, and none pays for what another has put off.

What a tool has put off (dirty pages, commits) is written back while others have their turns: they pay for it, and its
own rate is too high. So each slice ends with a flush, in its own time, if the stacks share a disk and the workload
leaves work behind; elsewhere only if it is seen to reach the disk in the slices of others, because a flush changes what
is measured. ``trial`` defines what a trial does.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fslab import workloads
from fslab.campaign.prepared_states import PreparedStates
from fslab.campaign.trial import run_in_slices
from fslab.cell import Cell, TrialKey
from fslab.feasibility import medium_plan
from fslab.plan.slicing import leaves_work
from fslab.record import TrialRecord
from fslab.storage import Workspace, images
from fslab.system import memory
from fslab.validity.trial.time import LEFT_MOST


@dataclass(kw_only=True, slots=True)
class SlicedRounds:
    """The rounds in slices of a campaign. ``machine``: the facts stored with trials. ``states``: what they share."""

    workspace: Workspace
    machine: Mapping[str, Any]
    states: PreparedStates
    _left: set[str] = field(default_factory=set)  # workloads whose slices were seen to leave work to others

    def run(self, cells: Sequence[Cell], key: TrialKey) -> list[TrialRecord]:
        """Run one trial of each of these cells, which have one workload. If they are found to leave work to others,
        they run once more, with a flush, and each record has the time of both."""
        work = cells[0].workload.model_dump_json()
        drain = work in self._left or (_leaves_work(cells[0]) and share_a_disk(cells, self.workspace.images))
        records = self._once(cells, key, drain=drain)
        if drain or not any(map(left_work, records)):
            return records
        self._left.add(work)
        again = self._once(cells, key, drain=True)
        return [
            second.model_copy(
                update={"started": first.started, "duration_s": first.duration_s + second.duration_s}
            )
            for first, second in zip(records, again, strict=True)
        ]

    def _once(self, cells: Sequence[Cell], key: TrialKey, *, drain: bool) -> list[TrialRecord]:
        turns = [self.states.begin(cell, key, "host") for cell in cells]
        records = run_in_slices(
            cells, key, self.workspace, machine=self.machine, drain=drain,
            prepared=list(map(self.states.prepared, turns)),
        )  # fmt: skip
        return list(map(self.states.end, turns, records))


def left_work(record: TrialRecord) -> bool:
    """Return whether too much of what a tool wrote reached its disks in the slices of others."""
    share = record.provenance.device.get("slices", {}).get("left_share")
    return share is not None and share > LEFT_MOST


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


def _leaves_work(cell: Cell) -> bool:
    return leaves_work(workloads.parsed(cell.workload).traits())
