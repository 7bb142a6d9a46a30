"""The median and the spread of one sample, and a distribution-free confidence interval of the median."""

import statistics
from collections.abc import Sequence
from math import ceil, comb, isfinite, log2

from fslab.stats import Interval, Reason
from fslab.stats.estimate_model import ComparisonMethod, RatioEstimate, no_ratio

MEDIAN_COVERAGE = 0.9  # of the interval shown with a median; the range of five trials achieves it (93.75 %)
MEDIAN_CI = f"{MEDIAN_COVERAGE:.0%} CI".replace("%", " %")


def median(values: Sequence[float]) -> float | None:
    """Return the middle value, or the mean of the two middle ones; None without values."""
    return statistics.median(values) if values else None


def half_range(values: Sequence[float]) -> float | None:
    """Return half the range as a fraction of the median: 0.04 means ± 4 %.

    None with fewer than two values (the spread is unknown), or if the median is not positive.
    """
    middle = median(values)
    if len(values) < 2 or middle is None or not middle > 0:
        return None
    return (max(values) - min(values)) / 2 / middle


def median_interval(values: Sequence[float], *, coverage: float = 0.95) -> Interval | None:
    """Return the narrowest symmetric pair of order statistics that covers the median with at least ``coverage``.

    None if there are too few values for that, or one is not finite.

    For every continuous distribution, the number of samples below the median is binomial(n, ½). Therefore (x₍ᵣ₎,
    x₍ₙ₊₁₋ᵣ₎) covers the median with probability 1 − 2·P(B < r); with ties, with at least this probability. The smallest
    n for 95 % is 6: the whole range of 5 samples covers 93.75 %.
    Source: David & Nagaraja, *Order Statistics*, 3rd ed. 2003, section 7.1.
    """
    ordered, size = sorted(values), len(values)
    rank = _rank(size, coverage)
    if rank == 0 or not all(map(isfinite, ordered)):
        return None
    return Interval(low=ordered[rank - 1], high=ordered[size - rank], coverage=rank_coverage(size, rank))


def estimate_median(values: Sequence[float], *, coverage: float = 0.95) -> RatioEstimate:
    """Estimate a figure that is 0 in some trials, which therefore has no logarithms.

    The median is in ``ratio``, with its distribution-free interval, which may begin or end at 0.
    """
    size, middle = len(values), median(values)
    # The range of n values covers the median with the probability 1 − 2 ^ (1 − n).
    needed = ceil(1 - log2(1 - coverage))
    interval = median_interval(values, coverage=coverage)
    if middle is None or interval is None:
        return no_ratio(size, size, Reason.TOO_FEW_SAMPLES, needed, coverage)
    return RatioEstimate(
        n_a=size, n_b=size, ratio=middle, interval=interval, p_value=None, reason=None, needed=needed,
        method=ComparisonMethod.MEDIAN, coverage=coverage,
    )  # fmt: skip


def rank_coverage(size: int, rank: int) -> float:
    """Return the probability that the ``rank``-th smallest and ``rank``-th largest sample enclose the median."""
    return 1 - 2 * sum(comb(size, below) for below in range(rank)) / (1 << size)


def _rank(size: int, coverage: float) -> int:
    """Return the largest rank with enough coverage; 0 if even the extremes do not have it."""
    rank = 0
    while 2 * (rank + 1) <= size and rank_coverage(size, rank + 1) >= coverage:
        rank += 1
    return rank
