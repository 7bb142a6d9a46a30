"""CPU time and memory of the tool itself and of the processes it waited for.

Takes what wait4(2) told of the tool when it ended; reads nothing else.
"""

from collections.abc import Mapping
from typing import ClassVar

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.record import Value
from fslab.units import Unit


class ToolCpu(Probe):
    """getrusage(2) of the tool. Work that it leaves to kernel threads is not in it; that of the machine is
    in ``machine_cpu_*``."""

    summary = "CPU time and peak memory of the tool"
    moments: ClassVar[tuple[SnapshotMoment, ...]] = ()

    def snapshot(self, target: Target) -> Snapshot:  # noqa: ARG002
        """Nothing: the runner already has what is needed."""
        return {}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Seconds, bytes and context switches."""
        usage = work.usage
        return ProbeFinding(
            values={
                "tool_cpu_user_s": Value(value=usage.user_s, unit=Unit.SECONDS),
                "tool_cpu_system_s": Value(value=usage.system_s, unit=Unit.SECONDS),
                "tool_max_rss": Value(value=usage.max_rss_bytes, unit=Unit.BYTES),
                "tool_voluntary_switches": Value(value=usage.voluntary_switches, unit=Unit.COUNT),
                "tool_involuntary_switches": Value(value=usage.involuntary_switches, unit=Unit.COUNT),
            }
        )
