"""CPU time and memory of the tool itself and of the processes it waited for.

Uses the result of wait4(2) for the tool; reads nothing else.
"""

from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, figures
from fslab.units import Unit


class ToolCpu(Probe):
    """Resource usage of the tool (getrusage(2)). It does not include work that kernel threads do for the tool;
    ``machine_cpu_*`` does."""

    summary = "CPU time and peak memory of the tool"
    moments = ()

    def snapshot(self, target: Target) -> Snapshot:  # noqa: ARG002
        """Return nothing; the runner already has what is needed."""
        return {}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Return seconds, bytes and context switches."""
        if (usage := work.usage) is None:
            return ProbeFinding(values={})
        return ProbeFinding(
            values={
                **figures(Unit.SECONDS, tool_cpu_user_s=usage.user_s, tool_cpu_system_s=usage.system_s),
                **figures(Unit.BYTES, tool_max_rss=usage.max_rss_bytes),
                **figures(
                    Unit.COUNT,
                    tool_voluntary_switches=usage.voluntary_switches,
                    tool_involuntary_switches=usage.involuntary_switches,
                ),
            }
        )
