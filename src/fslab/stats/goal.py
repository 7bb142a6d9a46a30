"""Determines the state of a comparison, and about how many more trials it needs.

Pure functions; they must not know what the numbers mean, nor run anything.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log, log1p, sqrt
from typing import Generic, TypeVar, assert_never

from fslab.stats import Reason
from fslab.stats.compare import INDEPENDENCE_LEAST, RatioEstimate, holm
from fslab.stats.sequential import Looks
from fslab.stats.student import two_sided_quantile

_MOST = 1_000_000
Name = TypeVar("Name", bound=Hashable)


class ComparisonState(StrEnum):
    """The state of one comparison: the first of these that applies."""

    A_LARGER = "a_larger"
    B_LARGER = "b_larger"
    EQUIVALENT = "equivalent"
    PRECISE = "precise"
    OPEN = "open"

    @property
    def decided(self) -> bool:
        """Whether it is known which side is larger."""
        return self in {ComparisonState.A_LARGER, ComparisonState.B_LARGER}


class Goal(StrEnum):
    """When to stop repeating.

    ``decided``: it is known which side is larger, or that both are equivalent. ``precise``: each ratio is precise
    enough.
    """

    DECIDED = "decided"
    PRECISE = "precise"


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared(Generic[Name]):
    """One comparison of a family: its two cells, and the estimate of their ratio."""

    cells: tuple[Name, Name]
    estimate: RatioEstimate


def state_of(estimate: RatioEstimate, *, precision: float) -> ComparisonState:
    """Return the state of a comparison.

    Decided: the interval excludes 1. Equivalent: the whole interval lies within a factor 1 + ``precision`` of 1.
    Precise: its half-width on logarithms is at most log(1 + ``precision``). Otherwise open.
    """  # fmt: skip
    interval = estimate.interval
    if interval is None:
        return ComparisonState.OPEN
    if interval.low > 1:
        return ComparisonState.A_LARGER
    if interval.high < 1:
        return ComparisonState.B_LARGER
    if _equivalent(estimate, precision):
        return ComparisonState.EQUIVALENT
    return ComparisonState.PRECISE if is_precise(estimate, precision=precision) else ComparisonState.OPEN


def is_precise(estimate: RatioEstimate, *, precision: float) -> bool:
    """Return whether the interval's half-width on logarithms is at most log(1 + ``precision``)."""
    return estimate.half_width is not None and estimate.half_width <= log1p(precision)


def settled(family: Sequence[Compared[Name]], *, goal: Goal, precision: float) -> list[bool]:
    """Return for each comparison of a family whether it has reached the goal or can never reach it.

    A family is what is read together: a row of the table. A difference counts as decided if it holds together with the
    others (Holm's correction of p-values that are over all looks, so that the family has a false difference in one of
    twenty cases over all its comparisons and looks). Equivalence is not corrected: each statement of equivalence is
    false in at most one of twenty cases. Below 20 blocks, a difference is settled only if it would also hold with an
    autocorrelation of 0.5. A comparison that has no ratio at all (a value is not positive) is settled, because more
    trials do not change that.
    """
    holding = _hold_together(family)
    return [
        _hopeless(item.estimate) or _reached(item.estimate, holds, goal, precision)
        for item, holds in zip(family, holding, strict=True)
    ]


def expected_needed(
    estimate: RatioEstimate, *, precision: float, goal: Goal = Goal.PRECISE, looks: Looks | None = None
) -> int | None:
    """Return roughly how many more blocks are needed; 0 if the goal is reached, None if this cannot be estimated.

    The estimate uses the present spread and, for ``decided``, the present ratio. More trials may change both, so it is
    for "time left", not for a decision. The half-width for n values is proportional to t(n − 1)/√n. With ``looks``,
    blocks are counted up to the look that would show the result.
    """
    half, now = estimate.half_width, min(estimate.n_a, estimate.n_b)
    if half is None or estimate.interval is None or estimate.ratio is None:
        return None
    wanted = _wanted_half_width(estimate.ratio, precision, goal)
    if _reached(estimate, estimate.differs is True, goal, precision):
        return 0
    if not wanted > 0:
        return None

    def width(size: int) -> float:
        """Return the half-width relative to one value's spread; t changes little beyond a thousand."""
        return two_sided_quantile(1 - coverage, min(size - 1 + estimate.borrowed, 1000)) / sqrt(size)

    coverage = min(estimate.interval.coverage, 1 - 1e-9)
    low, high = now, now + 1
    while high < _MOST and width(high) * half > wanted * width(now):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if width(middle) * half > wanted * width(now) else (low, middle)
    if goal is Goal.DECIDED and estimate.differs:
        high = INDEPENDENCE_LEAST  # it differs already; 20 blocks can show whether trials are independent
    if high >= _MOST:
        return None
    return (looks.next_after(high - 1) if looks else high) - now


def _wanted_half_width(ratio: float, precision: float, goal: Goal) -> float:
    limit, distance = log1p(precision), abs(log(ratio))
    match goal:
        case Goal.PRECISE:
            return limit
        case Goal.DECIDED:
            return max(distance, limit - distance)
        case _:
            assert_never(goal)


def _reached(estimate: RatioEstimate, holds: bool, goal: Goal, precision: float) -> bool:
    match goal:
        case Goal.DECIDED:
            sure = holds and not estimate.rests_on_independence
            return sure or _equivalent(estimate, precision)
        case Goal.PRECISE:
            return is_precise(estimate, precision=precision)
        case _:
            assert_never(goal)


def _equivalent(estimate: RatioEstimate, precision: float) -> bool:
    interval = estimate.interval
    return interval is not None and 1 / (1 + precision) <= interval.low and interval.high <= 1 + precision


def _hold_together(family: Sequence[Compared[Name]]) -> list[bool]:
    tested = [item.estimate for item in family if item.estimate.p_value is not None]
    adjusted = iter(holm([estimate.p_value for estimate in tested if estimate.p_value is not None]))
    return [
        item.estimate.p_value is not None
        and next(adjusted) <= 1 - item.estimate.coverage
        and item.estimate.differs is True
        for item in family
    ]


def _hopeless(estimate: RatioEstimate) -> bool:
    return estimate.reason in {Reason.NOT_POSITIVE, Reason.NOT_FINITE}
