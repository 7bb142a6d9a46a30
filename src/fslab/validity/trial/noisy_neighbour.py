"""Noisy neighbour: the machine itself became much slower or quicker during the run. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

MOVED_PERCENT = 40.0


class NoisyNeighbour(TrialRule):
    """A fixed loop in memory ran before and after. On an idle guest the worst of 40 was 1.5 times as slow as the best,
    hence the limit. No more than a doubt: what the run left to the kernel's threads slows the second loop as well."""

    summary = "the machine's own speed changed during the run"
    severity = Severity.DOUBT
    needs: ClassVar[tuple[str, ...]] = ("reference_moved",)
    hint: ClassVar[str] = "measure when the host is idle; comparisons by block remove slow changes"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """From two fifths on."""
        moved = facts.known("reference_moved")
        if moved >= MOVED_PERCENT:
            yield self.warning(
                f"the speed of a fixed loop before and after the run differed by {moved:.0f} %: something else uses "
                "cache, memory bandwidth or CPU time",
                moved_percent=moved, limit_percent=MOVED_PERCENT,
            )  # fmt: skip
