"""Finds which stacks are best in a metric, how certain this is, and which are worse. Pure.

Uses the comparisons of the metric's row only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fslab.analysis.comparison_model import COARSE, Comparison, ComparisonVerdict
from fslab.cell import Frozen
from fslab.units import Direction, Unit


class StandingCertainty(StrEnum):
    """How certain the best of a metric is.

    ``tie``: the interval contains 1. ``inconclusive``: the interval contains 1 and is wide, or there is no ratio.
    ``few``: too few trials for an interval. ``single``: nothing to compare with.
    """

    BEST = "best"
    TIE = "tie"
    INCONCLUSIVE = "inconclusive"
    FEW = "few_trials"
    SINGLE = "not_compared"


UNDECIDED = frozenset({StandingCertainty.INCONCLUSIVE, StandingCertainty.FEW})


class Standing(Frozen):
    """The best stacks in one metric of one workload.

    ``labels``: the best stack, or all that may be the best, the leader first. ``value``: the leader's median.
    ``next``: comparison with the nearest stack that is significantly worse, ``next_stack``. ``worse``: all that are.
    ``detectable``: smallest difference among the tied that would be detected, as a share. ``n``: complete blocks;
    ``needed``: complete blocks needed for an interval. ``not_compared``: stacks on other kinds of machines than the
    leader.
    """

    workload: str
    metric: str
    unit: Unit
    better: Direction
    certainty: StandingCertainty
    labels: tuple[str, ...]
    value: float | None
    next: Comparison | None = None
    next_stack: str | None = None
    worse: tuple[str, ...] = ()
    detectable: float | None = None
    n: int = 0
    needed: int = 0
    not_compared: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRow:
    """One metric of one workload on the stacks that have values for it, by label in the order of the plan.

    ``leader``: the stack with the best median; ``comparisons``: the leader with each
    other stack on the same kind of machine. ``n``: number of values of the first stack.
    """

    workload: str
    metric: str
    unit: Unit
    better: Direction
    medians: Mapping[str, float | None]
    leader: str | None
    comparisons: Sequence[Comparison]
    n: int


def standing(row: MeasuredRow) -> Standing:
    """Return the standing of a row. A stack is worse if the leader is significantly better.

    As in ``Mark``, "better than each other stack" needs no correction.
    """
    worse = {one.other(row.leader): one for one in row.comparisons if _is_behind(row, one)}
    tied = [one for one in row.comparisons if one.other(row.leader) not in worse]
    compared = {row.leader, *(one.other(row.leader) for one in row.comparisons)}
    not_compared = tuple(label for label in row.medians if row.leader is not None and label not in compared)
    best = sorted(
        (label for label in row.medians if label not in {*worse, *not_compared}),
        key=lambda label: label != row.leader,
    )
    next_stack, nearest = min(
        worse.items(), key=lambda item: item[1].ratio or item[1].more or 0.0, default=(None, None)
    )
    return Standing(
        workload=row.workload, metric=row.metric, unit=row.unit, better=row.better,
        certainty=_certainty(row, best, tied), labels=tuple(best),
        value=row.medians.get(row.leader or ""),
        next=nearest, next_stack=next_stack, worse=tuple(worse),
        detectable=max((one.detectable for one in tied if one.detectable is not None), default=None),
        n=min((min(one.n) for one in row.comparisons), default=row.n),
        needed=max((one.needed for one in row.comparisons), default=0), not_compared=not_compared,
    )  # fmt: skip


def _is_behind(row: MeasuredRow, one: Comparison) -> bool:
    """Return whether the other stack differs from the leader, and is not the better one of the two."""
    ahead = row.better is Direction.NEITHER or (one.ratio or 1.0) > 1 or (one.more or 0.0) > 0
    return one.verdict is ComparisonVerdict.DIFFERS and ahead


def _certainty(row: MeasuredRow, names: Sequence[str], rivals: Sequence[Comparison]) -> StandingCertainty:
    if not row.comparisons or row.better is Direction.NEITHER:
        return StandingCertainty.SINGLE
    verdicts = {one.verdict for one in row.comparisons}
    without = verdicts & {ComparisonVerdict.TOO_FEW, ComparisonVerdict.NO_RATIO}
    if without and ComparisonVerdict.DIFFERS not in verdicts:
        return StandingCertainty.FEW
    if len(names) == 1:
        return StandingCertainty.BEST
    open_to = {one.verdict for one in rivals}
    if ComparisonVerdict.TOO_FEW in open_to:
        return StandingCertainty.FEW
    if open_to & {ComparisonVerdict.NO_RATIO, ComparisonVerdict.DIFFERS}:  # the latter: it beats the leader
        return StandingCertainty.INCONCLUSIVE
    coarse = any((one.detectable or 0.0) > COARSE or one.more for one in rivals)
    return StandingCertainty.INCONCLUSIVE if coarse else StandingCertainty.TIE
