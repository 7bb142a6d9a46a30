"""Memory pressure: tasks waited for memory to be reclaimed. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

WAITED_PERCENT = 10.0


class MemoryPressure(TrialRule):
    """PSI, "some": whoever fills the memory, the tool or others, the cache is then smaller than the machine's,
    and evicted pages are read again."""

    summary = "tasks waited for memory"
    severity = Severity.DOUBT
    needs: ClassVar[tuple[str, ...]] = ("pressure_memory_some",)
    hint: ClassVar[str] = "free memory, use smaller images on a 'ram' medium, or fewer jobs"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        waited = facts.known("pressure_memory_some")
        if waited >= WAITED_PERCENT:
            yield self.warning(
                f"tasks waited for memory {waited:.0f} % of the time: the machine was short of it",
                waited_percent=waited,
            )
