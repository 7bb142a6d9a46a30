"""Records whether the CPU of a guest stood still during a trial's run. Does not judge it (``cpu_stood_still``)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Self

from fslab.system.cpu_speed import CpuSpeed
from fslab.trial_record import TrialRecord, Value
from fslab.units import Unit

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
