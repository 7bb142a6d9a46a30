"""Read-ahead: the kernel reads more than was requested. Documentation/admin-guide/blockdev, read_ahead_kb."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.workloads import Switchable


class ReadAhead(Mechanism):
    """It speeds up sequential reads and is wasted on random reads."""

    summary = "more is read than was requested"
    cause = "read-ahead"
    alters = True

    def applies(self, evidence: Evidence) -> bool:
        return evidence.traits.direct is False and not writes(evidence)

    def switch(self, evidence: Evidence) -> Switch | None:
        direct = evidence.traits.switches.get(Switchable.DIRECT)
        return Switch(parameters=direct) if direct else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        read = evidence.figure("read_amplification", "device bytes per byte read")
        if read is not None and read.value > 1.5:
            yield self.explanation(
                evidence,
                f"The device delivered {read.value:.2f} bytes for each byte read.",
                read,
                weight=read.value,
            )
