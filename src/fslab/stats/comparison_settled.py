"""Determines whether a comparison is settled, and about how many more trials it needs."""

from enum import StrEnum
from math import log, log1p, sqrt

from fslab.stats import Reason
from fslab.stats.distributions import two_sided_quantile
from fslab.stats.estimate_model import INDEPENDENCE_LEAST, RatioEstimate
from fslab.stats.interim_looks import Looks

_MOST = 1_000_000
_VAGUE = 8  # a forecast from n blocks can be 1 + _VAGUE / n times too large


class Goal(StrEnum):
    """When to stop repeating.

    ``decided``: it is known which side is larger, or that both are equivalent. ``precise``: each ratio is precise
    enough.
    """

    DECIDED = "decided"
    PRECISE = "precise"


def is_precise(estimate: RatioEstimate, *, precision: float) -> bool:
    """Return whether the interval's half-width on logarithms is at most log(1 + ``precision``)."""
    return estimate.half_width is not None and estimate.half_width <= log1p(precision)


def is_settled(estimate: RatioEstimate, holds: bool, *, goal: Goal, precision: float) -> bool:
    """Return whether a comparison has reached the goal or can never reach it.

    ``holds``: whether a difference holds together with the others that are read with it, the row of the table (Holm's
    correction of p-values that are over all looks, so that the row has a false difference in one of twenty cases over
    all its comparisons and looks). Equivalence is not corrected: each statement of equivalence is false in at most one
    of twenty cases. Below 20 blocks, a difference is settled only if it would also hold with an autocorrelation of 0.5.
    A comparison that has no ratio at all (a value is not positive) is settled, because more trials do not change that.
    So are counts of which all are 0: that no event came is the result.
    """
    over = estimate.reason in {Reason.NOT_POSITIVE, Reason.NOT_FINITE, Reason.NO_EVENTS}
    return over or _reached(estimate, holds, goal, precision)


def most_forecast(left: float, blocks: int) -> float:
    """Return the forecast from ``blocks`` blocks above which what is left is certainly not enough."""
    return left * (1 + _VAGUE / max(1, blocks))


def further_blocks(
    estimate: RatioEstimate, *, precision: float, goal: Goal = Goal.PRECISE, looks: Looks | None = None
) -> int | None:
    """Return roughly how many more blocks are needed; 0 if the goal is reached, None if this cannot be estimated.

    The estimate uses the present spread and, for ``decided``, the present ratio. More trials may change both, so it is
    for "time left", not for a decision. With ``looks``, blocks are counted up to the look that would show the result.
    """
    half, now = estimate.half_width, min(estimate.n_a, estimate.n_b)
    interval = estimate.interval or estimate.more_interval
    if half is None or interval is None:
        return None
    wanted = _wanted_half_width(estimate, precision, goal)
    if _reached(estimate, estimate.differs is True, goal, precision):
        return 0
    if not wanted > 0:
        return None
    fragile = estimate.if_correlated if goal is Goal.DECIDED and estimate.differs else None
    if fragile is not None:
        half *= fragile  # it must differ also if trials are correlated
    size = size_for(wanted, half, now, coverage=interval.coverage, borrowed=estimate.borrowed)
    if fragile is not None:
        # These blocks can show whether trials are independent.
        size = min(size or INDEPENDENCE_LEAST, INDEPENDENCE_LEAST)
    if size is None:
        return None
    return (looks.first_from(size) if looks else size) - now


def size_for(wanted: float, half: float, now: int, *, coverage: float, borrowed: float = 0.0) -> int | None:
    """Return how many values have an interval of half-width ``wanted``, if ``now`` values have one of ``half``.

    More than ``now``; None if it is a million or more. The half-width for n values is proportional to t(n − 1)/√n.
    """
    freedom = borrowed - 1

    def width(size: int) -> float:
        """Return the half-width relative to one value's spread; t changes little beyond a thousand."""
        return two_sided_quantile(1 - min(coverage, 1 - 1e-9), min(max(size + freedom, 1), 1000)) / sqrt(size)

    low, high = now, now + 1
    while high < _MOST and width(high) * half > wanted * width(now):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if width(middle) * half > wanted * width(now) else (low, middle)
    return None if high >= _MOST else high


def trials_to_detect(difference: float, spread: float) -> int:
    """Return how many trials of each of two cells detect a relative ``difference`` in four of five campaigns.

    For planning, before there are values: it adds the scatter of campaigns, which a forecast from the values of one
    (:func:`size_for`) already contains. ``spread``: standard deviation of the logarithms. At least three.
    """
    # Normal quantiles of 97.5 % and 80 %; the difference of two has √2 times the spread.
    return max(3, round(2 * ((1.96 + 0.84) * spread / log1p(difference)) ** 2 + 1))


def _wanted_half_width(estimate: RatioEstimate, precision: float, goal: Goal) -> float:
    if estimate.ratio is None:  # counts are never shown to be alike
        return abs(estimate.more or 0.0)
    limit, distance = log1p(precision), abs(log(estimate.ratio))
    return limit if goal is Goal.PRECISE else max(distance, limit - distance)


def _reached(estimate: RatioEstimate, holds: bool, goal: Goal, precision: float) -> bool:
    if goal is Goal.PRECISE and estimate.more is None:
        return is_precise(estimate, precision=precision)
    return (holds and not estimate.rests_on_independence) or is_equivalent(estimate, precision)


def is_equivalent(estimate: RatioEstimate, precision: float) -> bool:
    """Return whether the interval lies within 1 ÷ (1 + precision) to 1 + precision.

    Never for a difference of counts: however few events were seen, they may come rarely, but then many at once.
    """
    interval = estimate.interval
    return interval is not None and 1 / (1 + precision) <= interval.low and interval.high <= 1 + precision
