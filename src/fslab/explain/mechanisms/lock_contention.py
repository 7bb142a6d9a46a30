"""Threads that wait for each other: for a lock on a directory, an inode or a log."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch
from fslab.workloads import Switchable


class LockContention(Mechanism):
    """Waiting for locks and waiting for I/O both show as voluntary context switches."""

    summary = "threads wait for locks or I/O"
    cause = "parallel threads"
    alters = True

    def applies(self, evidence: Evidence) -> bool:
        return (evidence.traits.parallel or 1) > 1

    def switch(self, evidence: Evidence) -> Switch | None:
        serial = evidence.traits.switches.get(Switchable.SERIAL)
        return Switch(parameters=serial) if serial else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        switches, cpu = evidence.figure("tool_voluntary_switches"), evidence.figure("machine_cpu_busy")
        if switches is not None and cpu is not None and switches.value > 10_000 and cpu.value < 90:
            yield self.explanation(
                evidence,
                f"The threads waited {switches.value:.0f} times, for locks or I/O, while CPUs were idle.",
                switches,
                cpu,
                weight=0.1,
                certainty=Certainty.COINCIDES,
            )
