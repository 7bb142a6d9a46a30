"""Memory pressure: tasks waited for memory to be reclaimed. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

WAITED_PERCENT = 10.0


class MemoryPressure(TrialRule):
    """Under memory pressure (PSI, "some"), the page cache is smaller than usual, and evicted pages are read again.

    It does not matter whether the tool or another program uses the memory.
    """

    summary = "tasks waited for memory"
    severity = Severity.WARNING
    when = f"tasks waited for memory for {WAITED_PERCENT:g} % of the time or more (PSI)"
    needs = ("pressure_memory_some",)
    hint = "free memory, use smaller images on a 'ram' medium, or fewer jobs"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        waited = facts.known("pressure_memory_some")
        if waited >= WAITED_PERCENT:
            yield self.warning(
                f"tasks waited for memory {waited:.0f} % of the time: the machine was short of it",
                waited_percent=waited,
            )
