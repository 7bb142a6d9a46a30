"""Operations that wait while the journal commits: whether the slowest operations overlap commits."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Certainty, Explanation
from fslab.units import Unit, format_value

# Percentage points: three standard errors of a share of thirty operations, at their maximum.
_LEAST_BEYOND_CHANCE = 27


class CommitStalls(Mechanism):
    """Compares commits in a kernel trace with the tool's log of every operation. Overlap is no proof of a cause."""

    summary = "the slowest operations coincide with commits of the journal"
    cause = "commits of the journal"
    filesystems = frozenset({"ext3", "ext4"})
    unless = ("^has_journal",)
    # No switch: only the switch of the mechanism `journal` turns commits off.

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        slow = evidence.of_trace("traced_slow_in_commits", "slowest 0.1 % in commits")
        chance = evidence.of_trace("traced_chance_in_commits", "operations as long, at other moments")
        base = evidence.of_trace("traced_all_in_commits", "all operations in commits")
        count = evidence.of_trace("traced_slow_operations", "slowest operations")
        limit = evidence.of_trace("traced_slow_from", "their latency at least")
        if slow is None or chance is None or base is None or limit is None:
            return
        if slow.value >= chance.value + _LEAST_BEYOND_CHANCE:
            yield self.explanation(
                evidence,
                f"{slow.value:.0f} % of the slowest 0.1 % of operations ({format_value(limit.value, Unit.NANOSECONDS)} "
                f"and more; those at the same time count once) coincide with a commit of the journal. By chance "
                f"{chance.value:.2g} % of operations this long would; of all operations {base.value:.2g} % do.",
                slow,
                chance,
                base,
                count,
                limit,
                weight=slow.value / 100,
                certainty=Certainty.COINCIDES,
                refuted_by="equally many slow operations without a journal (mkfs -O ^has_journal)",
            )
