"""Threads that wait for each other: a lock on a directory, an inode or a log."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism
from fslab.explain.seen import Seen
from fslab.explain.statement import Certainty, Statement
from fslab.explain.switch import Switch


class LockContention(Mechanism):
    """Waiting shows as switches of a task that was willing to run on."""

    summary = "threads wait for locks"
    cause = "more than one thread"
    alters = True

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return int(seen.parameters.get("numjobs", seen.parameters.get("threads", 1))) > 1

    def switch(self, seen: Seen) -> Switch | None:
        """As its own option says."""
        name = "threads" if seen.cell.workload.tool == "engine" else "numjobs"
        return Switch(parameters={name: 1})

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        switches, cpu = seen.figure("tool_voluntary_switches"), seen.figure("machine_cpu_busy")
        if switches is not None and cpu is not None and switches.value > 10_000 and cpu.value < 90:
            yield self.said(
                seen,
                f"The threads waited {switches.value:.0f} times while CPUs were idle.",
                switches,
                cpu,
                weight=0.1,
                certainty=Certainty.COINCIDES,
            )
