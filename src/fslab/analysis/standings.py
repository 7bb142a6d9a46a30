"""Who is best in a metric, with what certainty, and who is behind: decided from the comparisons of its row. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fslab.analysis.comparison_model import COARSE, Comparison, ComparisonVerdict
from fslab.cell import Frozen
from fslab.units import Direction, Unit


class StandingCertainty(StrEnum):
    """How sure the best of a metric is. ``tie``: the interval contains 1; ``inconclusive``: it does, and is wide;
    ``few``: too few trials for an interval; ``single``: nothing to compare with."""

    BEST = "best"
    TIE = "tie"
    INCONCLUSIVE = "inconclusive"
    FEW = "few_trials"
    SINGLE = "not_compared"


UNDECIDED = frozenset({StandingCertainty.INCONCLUSIVE, StandingCertainty.FEW})


class Standing(Frozen):
    """Who is best in one metric of one workload. ``kinds`` may be the best, the leading one first; ``labels`` are
    their stacks in short; ``value`` is the leader's median.

    ``next``: the first that is shown to be worse, as a comparison; ``next_kind``: its kind, or, where only variants of
    the best kinds are, its label. ``worse``: kinds that are, on all of their stacks.
    ``detectable``: the share that a difference among the tied must have to be detected. ``needed``: complete blocks
    for an interval, ``n``: those there are.
    """

    workload: str
    metric: str
    unit: Unit
    better: Direction
    certainty: StandingCertainty
    kinds: tuple[str, ...]
    labels: tuple[str, ...]
    value: float | None
    next: Comparison | None = None
    next_kind: str | None = None
    worse: tuple[str, ...] = ()
    detectable: float | None = None
    n: int = 0
    needed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRow:
    """One metric of one workload on the stacks that have values for it, by label in the order of the plan.

    ``kinds``: what each counts as. ``leader`` and ``comparisons``: of the best median with each other stack. ``n``: how
    many values the first one has.
    """

    workload: str
    metric: str
    unit: Unit
    better: Direction
    kinds: Mapping[str, str]
    medians: Mapping[str, float | None]
    leader: str | None
    comparisons: Sequence[Comparison]
    n: int

    def other(self, item: Comparison) -> str:
        """The label that the leader is compared with."""
        return item.denominator if item.numerator == self.leader else item.numerator


def standing(row: MeasuredRow) -> Standing:
    """Worse is who differs from the leader: as in ``Mark``, better than each other one needs no correction."""
    worse = {row.other(one): one for one in row.comparisons if one.verdict is ComparisonVerdict.DIFFERS}
    tied = [one for one in row.comparisons if row.other(one) not in worse]
    best = sorted((label for label in row.kinds if label not in worse), key=lambda label: label != row.leader)
    names = tuple(dict.fromkeys(row.kinds[label] for label in best))
    behind = {label: one for label, one in worse.items() if row.kinds[label] not in names}
    told = [(row.kinds[label], one) for label, one in behind.items()] or [*worse.items()]
    next_kind, nearest = min(
        told, key=lambda item: item[1].ratio or item[1].more or 0.0, default=(None, None)
    )
    rivals = [one for one in tied if row.kinds[row.other(one)] != names[0]]
    return Standing(
        workload=row.workload, metric=row.metric, unit=row.unit, better=row.better,
        certainty=_certainty(row, names, rivals), kinds=names, labels=_short(best, row.kinds),
        value=row.medians.get(row.leader or ""),
        next=nearest, next_kind=next_kind,
        worse=tuple(dict.fromkeys(row.kinds[label] for label in behind)),
        detectable=max((one.detectable for one in rivals if one.detectable is not None), default=None),
        n=min((min(one.n) for one in row.comparisons), default=row.n),
        needed=max((one.needed for one in row.comparisons), default=0),
    )  # fmt: skip


def _certainty(row: MeasuredRow, names: Sequence[str], rivals: Sequence[Comparison]) -> StandingCertainty:
    if not row.comparisons or row.better is Direction.NEITHER:
        return StandingCertainty.SINGLE
    verdicts = {one.verdict for one in row.comparisons}
    without = verdicts & {ComparisonVerdict.TOO_FEW, ComparisonVerdict.NO_RATIO}
    if without and ComparisonVerdict.DIFFERS not in verdicts:
        return StandingCertainty.FEW
    if len(names) == 1:
        return StandingCertainty.BEST
    coarse = any((one.detectable or 0.0) > COARSE or one.more for one in rivals)
    return StandingCertainty.INCONCLUSIVE if coarse else StandingCertainty.TIE


def _short(best: Sequence[str], kinds: Mapping[str, str]) -> tuple[str, ...]:
    """``xfs``, ``xfs (2 of 4)``: a kind, with how many of its stacks where that is not all."""
    found = {}
    for kind in dict.fromkeys(kinds[label] for label in best):
        own = sum(kinds[label] == kind for label in best)
        of = list(kinds.values()).count(kind)
        found[kind] = kind if own == of else f"{kind} ({own} of {of})"
    return tuple(found.values())
