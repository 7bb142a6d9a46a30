"""No journal: nothing is written twice, and a crash costs a full e2fsck."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.evidence import Evidence, Explanation
from fslab.explain.mechanisms import Mechanism, Switch


class NoJournal(Mechanism):
    """Where the sample's file system is in use."""

    summary = "nothing is written to a journal"
    cause = "the missing journal"

    def applies(self, evidence: Evidence) -> bool:
        return evidence.cell.stack.filesystem == "ext4-nojournal"

    def switch(self, evidence: Evidence) -> Switch | None:
        return None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        yield self.explanation(evidence, "Nothing is written to a journal.")
