"""CPU saturated: all CPUs were busy while the tool measured. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule, _cpu_use


class CpuSaturated(TrialRule):
    """A tool with one thread that saturates its own CPU causes no warning.

    Such a run compares how much work one CPU does, and the kernel's workers (loop, writeback, journal) use the other
    CPUs. If all CPUs are busy, the workers and the tool compete for CPU time. Then the figure depends on the number of
    CPUs as much as on the file system. Load of other programs is ``foreign-load``.
    """

    summary = "CPU-bound: not a storage result"
    severity = Severity.WARNING
    when = (
        f"all CPUs were {_cpu_use.SATURATED_PERCENT:g} % busy while the tool measured, less than "
        f"{_cpu_use.BUSY_PERCENT:g} % with other programs: the result is CPU cost, not storage. Usual on "
        "`ram` media"
    )
    needs = ("machine_cpu_busy_measured",)
    hint = "use fewer jobs or threads, or measure on a machine with more CPUs"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Check the measured part of the run."""
        busy = facts.known("machine_cpu_busy_measured")
        if _cpu_use.by_tool(facts):
            count = f"{facts.cpus} CPUs" if facts.cpus else "CPUs"
            yield self.warning(
                f"all {count} were busy ({busy:.0f} %): CPU-bound, this compares CPU cost, not storage",
                busy_percent=busy, cpus=facts.cpus,
            )  # fmt: skip
