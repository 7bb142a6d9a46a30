"""Cache dropped: another process dropped the machine's caches during the run. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class CacheDropped(TrialRule):
    """Only the tool itself (``drops``) writes to /proc/sys/vm/drop_caches during a run; other writes are from another
    process."""

    summary = "another process dropped the machine's caches"
    severity = Severity.INVALID
    when = "something else than the tool wrote to /proc/sys/vm/drop_caches during the run"
    needs = ("cache_drops",)
    hint = "measure when the machine is idle"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        drops = facts.known("cache_drops") - facts.work.drops
        if drops > 0:
            yield self.warning("another process dropped the machine's caches during the run", drops=drops)
