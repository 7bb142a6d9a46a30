"""Noisy neighbour: the machine itself became much slower or faster during the run. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

MOVED_PERCENT = 40.0


class NoisyNeighbour(TrialRule):
    """A fixed loop in memory ran before and after the run.

    On an idle guest, the worst of 40 loops took 1.5 times as long as the best; the limit follows from this. The warning
    is only a warning, because work that the run left to kernel threads also slows the second loop.
    """

    summary = "the machine's own speed changed during the run"
    severity = Severity.WARNING
    when = (
        f"a fixed loop of system calls and copies, before and after the run, differed by {MOVED_PERCENT:g} "
        "% or more: something that no counter of a guest shows takes cache, memory bandwidth or CPU time"
    )
    needs = ("reference_moved",)
    hint = "measure when the host is idle; comparisons by block remove slow changes"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Warn from a difference of 40 % on."""
        moved = facts.known("reference_moved")
        if moved >= MOVED_PERCENT:
            yield self.warning(
                f"the speed of a fixed loop before and after the run differed by {moved:.0f} %: something else uses "
                "cache, memory bandwidth or CPU time",
                moved_percent=moved, limit_percent=MOVED_PERCENT,
            )  # fmt: skip
