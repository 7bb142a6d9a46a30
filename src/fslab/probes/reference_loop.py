"""Run a fixed loop of system calls and copies immediately before and after the run, to detect a change in the speed of
the machine.

The loop takes 50 ms each time. This probe is the first before the run and the last after it.
"""

from collections.abc import Mapping
from math import sqrt

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.system import cpu_speed
from fslab.trial_record import Value
from fslab.units import Unit


class ReferenceLoop(Probe):
    """The loop reads blocks of 4 KiB from a file in memory. Other guests on the same hardware take cache and memory
    bandwidth, which no counter of a guest shows: on an idle guest with 0.2 % steal, such a loop varied by 16 %."""

    of_machine = True
    summary = "speed of a fixed loop of system calls, before and after the run"
    outermost = True

    def snapshot(self, target: Target) -> Snapshot:  # noqa: ARG002
        """Return the reads per second."""
        return {"rate": cpu_speed.reference_rate()}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute the geometric mean of both rates, by how many percent the lower rate is below the higher one, and the
        rate before the run, which the run itself cannot have changed."""
        rates = [taken[moment]["rate"] for moment in self.moments]
        return ProbeFinding(
            values={
                "reference_rate": Value(value=sqrt(rates[0] * rates[1]), unit=Unit.OPERATIONS_PER_SECOND),
                "reference_before": Value(value=rates[0], unit=Unit.OPERATIONS_PER_SECOND),
                "reference_moved": Value(value=100 * (1 - min(rates) / max(rates)), unit=Unit.PERCENT),
            }
        )
