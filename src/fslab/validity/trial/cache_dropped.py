"""Cache dropped: another process dropped the machine's caches during the run. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class CacheDropped(TrialRule):
    """One write to /proc/sys/vm/drop_caches during a run is never ours."""

    summary = "another process dropped the machine's caches"
    severity = Severity.INVALID
    needs: ClassVar[tuple[str, ...]] = ("cache_drops",)
    hint: ClassVar[str] = "measure when the machine is idle"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        drops = facts.known("cache_drops")
        if drops > 0:
            yield self.warning("another process dropped the machine's caches during the run", drops=drops)
