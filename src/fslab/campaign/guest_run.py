"""The host's part of a trial that runs in a guest: activates its media during the run, and reads their counters.

Records whether the CPU of the guest stood still, which it does not judge (``cpu_stood_still``).
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from types import TracebackType
from typing import Any, Self

from fslab.campaign import disks, trial_setup
from fslab.campaign.prepared_states import KEEP, Prepared
from fslab.cell import Cell
from fslab.probes.virtual_disk import figures
from fslab.storage import Workspace
from fslab.system.cpu_speed import CpuSpeed
from fslab.trial_record import TrialRecord, Value
from fslab.units import Unit
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial_warnings import trial_warnings

TOOL_BEGINS, TOOL_ENDS = "tool begins", "tool ends"  # messages of a trial in a guest
STOOD_STILL = "cpu_stood_still"  # probe: share of the run in %
SLOW = 0.5  # × the median speed: a CPU that is slower stands still, in part
PARTS_LEAST = 4  # of a run; fewer have no typical speed


@dataclass(kw_only=True, slots=True)
class RunSpeed:
    """The speed while the tool of one trial runs. ``speed`` watches the CPU; None: nothing does.

    A context manager: leaving it stops watching, if the tool has not ended.
    """

    speed: CpuSpeed | None
    _moments: dict[str, float] = field(default_factory=dict, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.speed is not None:
            self.speed.pause()

    def told(self, what: str) -> None:
        """Note when the tool begins and ends, and watch the CPU in between. Other and repeated messages are ignored."""
        if self.speed is None or what not in {TOOL_BEGINS, TOOL_ENDS} or what in self._moments:
            return
        self._moments[what] = time.monotonic()
        if what == TOOL_BEGINS:
            self.speed.resume()
        else:
            self.speed.pause()

    def completed(self, record: TrialRecord) -> TrialRecord:
        """Return the record with the share of the run in which the CPU stood still; without one if it is unknown.

        What the guest says of it does not count: its root may write anything.
        """
        probes = {name: value for name, value in record.probes.items() if name != STOOD_STILL}
        rates = self._rates()
        if any(rates):
            probes[STOOD_STILL] = Value(value=100 * stood_still(rates), unit=Unit.PERCENT)
        return record.model_copy(update={"probes": probes})

    def _rates(self) -> list[float]:
        if self.speed is None or not {TOOL_BEGINS, TOOL_ENDS} <= self._moments.keys():
            return []
        return self.speed.rates(self._moments[TOOL_BEGINS], self._moments[TOOL_ENDS])


def stood_still(rates: Sequence[float]) -> float:
    """Return the share of a run that was lost in parts at less than half of its median speed; 0 if it is too short.

    A part without a piece of work (0) is lost whole, except at the ends, where the loop begins and pauses.
    """
    worked = [index for index, rate in enumerate(rates) if rate]
    if not worked or len(rates := rates[worked[0] : worked[-1] + 1]) < PARTS_LEAST:
        return 0.0
    middle = median(rate for rate in rates if rate)
    return sum(1 - rate / middle for rate in rates if rate < SLOW * middle) / len(rates)


@dataclass(kw_only=True)
class GuestRun:
    """The host's part of one trial. A context manager: leaving it deactivates the media if they are still active.

    ``cpu``: the CPU that the guest and its disks are pinned to; None if they may use several.
    """

    cell: Cell
    workspace: Workspace
    speed: RunSpeed
    cpu: int | None = None
    prepared: Prepared | None = None
    taken: list[list[dict[str, Any]]] = field(default_factory=list)
    requested: dict[str, Value] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    began: datetime = field(init=False)
    holding_s: float = field(init=False)
    released_bytes: int = 0
    undo: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.began, clock = datetime.now(UTC), time.monotonic()
        # Here the disks are new, or copied: what they gave back is taken before the host gets it.
        trial_setup.memory_needed(self.cell, in_guest=True).hold(self.workspace.warm_memory)
        self.holding_s = time.monotonic() - clock
        self.undo.enter_context(self.speed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.undo.close()

    def told(self, what: str) -> None:
        """Handle a message: the files are prepared, the run begins, or it has ended and all is flushed; the tool itself
        begins or ends.

        Repeated messages are ignored.
        """
        self.speed.told(what)
        if what == KEEP and self.prepared is not None and not self.taken:
            self.prepared.keep()
            return
        if (what, len(self.taken)) == (disks.BEGINS, 0):
            self.undo.enter_context(disks.running(self.cell, self.workspace))
            self.released_bytes = self.workspace.warm_memory.release(self.cpu)
        elif (what, len(self.taken)) != (disks.ENDS, 1):
            return
        self.taken.append(disks.statistics(disks.facts(self.cell, self.workspace)))
        if what == disks.ENDS:
            self.requested, self.raw = disks.requests(self.cell, self.workspace)
            self.undo.close()

    def completed(self, record: TrialRecord) -> TrialRecord:
        """Return the record with the counters of its disks, the warnings that follow from them, and the CPU's speed."""
        device = {**record.provenance.device, **disks.facts(self.cell, self.workspace)}
        held_bytes = self.released_bytes or record.provenance.memory_held_bytes
        changes: dict[str, Any] = {
            "provenance": record.provenance.model_copy(
                update={"device": device, "memory_held_bytes": held_bytes}
            ),
            "raw": {**record.raw, **self.raw},
        }
        if self.released_bytes:
            changes |= {"started": self.began, "duration_s": record.duration_s + self.holding_s}
        record = self.speed.completed(record.model_copy(update=changes))
        counted = {name: value for name, value in record.probes.items() if name == STOOD_STILL}
        if len(self.taken) == 2 and all(self.taken):
            before, after = self.taken
            counted |= {**figures(before, after, after), **self.requested}
        facts = TrialFacts(
            work=WorkFacts(), cold=False, figures=counted, disk_fidelities=disks.fidelities(device),
            image_filesystem=disks.image_filesystem(self.cell, self.workspace),
        )  # fmt: skip
        warnings = trial_warnings(facts, self.cell.known_limits, of_host=True)
        return record.model_copy(
            update={"probes": {**record.probes, **counted}, "validity": (*record.validity, *warnings)}
        )
