"""CPU saturated: no CPU was left while the tool measured. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

SATURATED_PERCENT = 97.0


class CpuSaturated(TrialRule):
    """A tool with one thread that fills its own CPU is no reason for doubt: how much work a CPU gets done is
    what such a run compares, and the kernel's workers (loop, writeback, journal) have the other CPUs. Once
    all CPUs are busy, those workers and the tool take time from each other, and the figure says as much about
    the number of CPUs as about the file system."""

    summary = "CPU-bound: not a storage result"
    severity = Severity.DOUBT
    needs: ClassVar[tuple[str, ...]] = ("machine_cpu_busy_measured",)
    hint: ClassVar[str] = (
        "use fewer jobs or threads, or measure on a machine with more CPUs and nothing else to do"
    )

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """In the measured part of the run."""
        busy = facts.known("machine_cpu_busy_measured")
        if busy >= SATURATED_PERCENT:
            count = f"{facts.cpus} CPUs" if facts.cpus else "CPUs"
            yield self.warning(
                f"all {count} were busy ({busy:.0f} %): CPU-bound, this compares CPU cost, not storage",
                busy_percent=busy, cpus=facts.cpus,
            )  # fmt: skip
