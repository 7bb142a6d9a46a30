"""Cache not dropped: without root, only the pages of the files were dropped. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class CacheNotDropped(TrialRule):
    """Dentries and inodes can be dropped only through /proc/sys/vm/drop_caches, which needs root."""

    summary = "dentries and inodes stayed cached"
    severity = Severity.WARNING
    when = "`cache: cold` without root: only the pages of the workload's own files could be dropped"
    hint = "run as root for a cold cache"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        if facts.cold and not facts.caches_dropped:
            yield self.warning(
                "without root only the files' own pages were dropped: dentries and inodes stayed cached"
            )
