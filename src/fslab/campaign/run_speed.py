"""Records how fast the CPU of a guest was during a trial's run. Does not judge it.

``analysis.cpu_speed`` corrects comparisons by it.
"""

import time
from dataclasses import dataclass, field
from statistics import fmean
from typing import Self

from fslab.analysis.cpu_speed import OBSERVED
from fslab.record import TrialRecord, Value
from fslab.system.cpu_speed import CpuSpeed
from fslab.units import Unit

TOOL_BEGINS, TOOL_ENDS = "tool begins", "tool ends"  # messages of a trial in a guest


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
        observed = {name: seen for name, seen in record.provenance.observed.items() if name != OBSERVED}
        probes = {name: value for name, value in record.probes.items() if name != OBSERVED}
        rates = self._rates()
        if any(rates):
            known = [rate for rate in rates if rate]
            probes[OBSERVED] = Value(value=fmean(known), unit=Unit.OPERATIONS_PER_SECOND)
            observed[OBSERVED] = tuple(f"{rate:.0f}" for rate in rates)
        provenance = record.provenance.model_copy(update={"observed": observed})
        return record.model_copy(update={"probes": probes, "provenance": provenance})

    def _rates(self) -> list[float]:
        if self.speed is None or not {TOOL_BEGINS, TOOL_ENDS} <= self._moments.keys():
            return []
        return self.speed.rates(self._moments[TOOL_BEGINS], self._moments[TOOL_ENDS])
