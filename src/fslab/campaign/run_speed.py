"""Records how fast the CPU of a guest was during a trial's run. Does not judge it.

``analysis.cpu_speed`` corrects comparisons by it.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Self

from fslab.analysis.cpu_speed import OBSERVED
from fslab.analysis.usability import is_failed, is_invalid
from fslab.record import TrialRecord, Value
from fslab.system.cpu_speed import CpuSpeed
from fslab.units import Unit
from fslab.validity.trial.cpu_stood_still import STANDING_PERCENT

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
        """Return the record with the speed of the CPU while the tool ran, or with none if it is unknown.

        What the guest says of it does not count: its root may write anything.
        """
        own = {OBSERVED, STOOD_STILL}
        observed = {name: seen for name, seen in record.provenance.observed.items() if name not in own}
        probes = {name: value for name, value in record.probes.items() if name not in own}
        rates = self._rates()
        if any(rates):
            known = [rate for rate in rates if rate]
            probes[OBSERVED] = Value(value=fmean(known), unit=Unit.OPERATIONS_PER_SECOND)
            probes[STOOD_STILL] = Value(value=100 * stood_still(rates), unit=Unit.PERCENT)
            observed[OBSERVED] = tuple(f"{rate:.0f}" for rate in rates)
        provenance = record.provenance.model_copy(update={"observed": observed})
        return record.model_copy(update={"probes": probes, "provenance": provenance})

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


def is_worth_repeating(record: TrialRecord) -> bool:
    """Return whether the CPU stood still for too long in a run that did not fail, by what the host measured."""
    return not is_failed(record) and (_lost_percent(record) or 0.0) >= STANDING_PERCENT


def repeated(first: TrialRecord, again: TrialRecord) -> TrialRecord:
    """Return the record of the better of two runs of a trial, with the time of both, and a note of the other run.

    A run is better if it did not fail, is not invalid, and lost less; an unknown loss is the largest.
    """
    kept = min(first, again, key=_faults)
    if kept is again:
        noted = f"{_lost_text(first)} of a first run, which was repeated"
    elif is_failed(again):
        noted = f"{_lost_text(first)} of this run; a second one failed: {again.error}"
    else:
        noted = f"{_lost_text(first)} of this run; {_lost_text(again)} of a second one"
    provenance = kept.provenance.model_copy(
        update={"observed": {**kept.provenance.observed, STOOD_STILL: (noted,)}}
    )
    both_s = first.duration_s + again.duration_s
    return kept.model_copy(update={"started": first.started, "duration_s": both_s, "provenance": provenance})


def _faults(record: TrialRecord) -> tuple[bool, bool, float]:
    lost = _lost_percent(record)
    return is_failed(record), is_invalid(record), math.inf if lost is None else lost


def _lost_percent(record: TrialRecord) -> float | None:
    known = record.probes.get(STOOD_STILL)
    return known.value if known is not None else None


def _lost_text(record: TrialRecord) -> str:
    lost = _lost_percent(record)
    return "an unknown part" if lost is None else f"{lost:.0f} %"
