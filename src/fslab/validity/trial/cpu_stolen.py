"""CPU stolen: the hypervisor gave CPU time to other guests. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

STOLEN_PERCENT = 5.0


class CpuStolen(TrialRule):
    """The share is of the time of all CPUs, including idle time: only CPU time that a guest needs can be stolen."""

    summary = "the hypervisor took CPU time"
    severity = Severity.WARNING
    when = f"the hypervisor took {STOLEN_PERCENT:g} % or more of the time of all CPUs"
    needs = ("machine_cpu_steal",)
    hint = "measure when the host is quiet, or on bare metal"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        stolen = facts.known("machine_cpu_steal")
        if stolen >= STOLEN_PERCENT:
            yield self.warning(
                f"the hypervisor took {stolen:.0f} % of the CPU time for other guests", steal_percent=stolen
            )
