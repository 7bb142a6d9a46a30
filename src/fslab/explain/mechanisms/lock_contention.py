"""Threads that wait for each other: a lock on a directory, an inode or a log."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism
from fslab.explain.seen import Seen
from fslab.explain.statement import Certainty, Statement
from fslab.explain.switch import Switch
from fslab.workloads import Switchable


class LockContention(Mechanism):
    """Waiting shows as switches of a task that was willing to run on."""

    summary = "threads wait for locks"
    cause = "more than one thread"
    alters = True

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return (seen.traits.parallel or 1) > 1

    def switch(self, seen: Seen) -> Switch | None:
        """As its own option says."""
        serial = seen.traits.switches.get(Switchable.SERIAL)
        return Switch(parameters=serial) if serial else None

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
