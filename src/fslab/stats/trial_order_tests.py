"""Tests whether values drift in the order of measurement, and whether each value resembles the one before.

Pure functions, deterministic; they must not know what the numbers mean. The caller decides how large a drift matters.
scipy.stats has the same Kendall test (a test compares both), but without ties in time, and it takes longer to load than
a report takes to make. It has no Bartels test.
"""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from math import erfc, factorial, isfinite, sqrt

from fslab.stats import Reason
from fslab.stats.student import beta_tail

TREND_LEAST = 4
AUTOCORRELATION_LEAST = 8
_EXACT = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Trend:
    """The linear trend of a series.

    ``slope``: per unit of time (per value without times). ``change``: over the whole series, as a fraction of the
    median (0.08: 8 % up). ``p_value``: two-sided, for "there is no trend".
    """

    n: int
    slope: float | None = None
    change: float | None = None
    p_value: float | None = None
    reason: Reason | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Autocorrelation:
    """``lag1``: of ranks, from −1 to 1. ``p_value``: one-sided, for "no value resembles the one before it"."""

    n: int
    lag1: float | None = None
    p_value: float | None = None
    reason: Reason | None = None


def trend(values: Sequence[float], times: Sequence[float] | None = None) -> Trend:
    """Return the Theil–Sen slope (the median of the slopes of all pairs) and the result of the Mann–Kendall test.

    The test is exact without ties and for up to 60 values. Otherwise it uses the normal approximation, with the
    variance for ties and a continuity correction, which is adequate from 10 values on. It assumes values that are
    independent except for the trend. ``times`` can be in any order. All results are None with fewer than 4 values.
    Source: Mann, Econometrica 13 (1945) 245; Kendall, *Rank Correlation Methods*, 1975, chapter 4; Theil, Proc. Kon.
    Ned. Akad. v. Wetensch. A 53 (1950) 386; Sen, JASA 63 (1968) 1379.
    """
    when = range(len(values)) if times is None else times
    points = sorted(zip(when, values, strict=True))
    problem = _problem(values, TREND_LEAST)
    if problem is not None:
        return Trend(n=len(values), reason=problem)
    slopes = [(y2 - y1) / (t2 - t1) for (t1, y1), (t2, y2) in combinations(points, 2) if t2 != t1]
    if not slopes:
        return Trend(n=len(values), reason=Reason.TOO_FEW_SAMPLES)
    slope, middle = statistics.median(slopes), statistics.median(values)
    score = sum(each > 0 for each in slopes) - sum(each < 0 for each in slopes)
    change = slope * (points[-1][0] - points[0][0]) / middle if middle > 0 else None
    groups = [[*Counter(column).values()] for column in zip(*points, strict=True)]
    return Trend(n=len(values), slope=slope, change=change, p_value=_kendall_p(score, len(values), groups))


def autocorrelation(values: Sequence[float]) -> Autocorrelation:
    """Test whether neighbours resemble each other, with Bartels' rank version of von Neumann's ratio.

    It uses ranks, so that one outlier neither causes nor hides autocorrelation. Its beta approximation is good from 8
    values on. Drift also makes neighbours similar, so check :func:`trend` first.
    Source: Bartels, JASA 77 (1982) 40; von Neumann, Ann. Math. Statist. 12 (1941) 367.
    """
    size = len(values)
    problem = _problem(values, AUTOCORRELATION_LEAST)
    if problem is not None:
        return Autocorrelation(n=size, reason=problem)
    ranks = midranks(values)
    centred = [rank - (size + 1) / 2 for rank in ranks]
    spread = sum(value * value for value in centred)
    if spread == 0:
        return Autocorrelation(n=size, reason=Reason.TOO_FEW_SAMPLES)
    neighbours = [*pairwise(centred)]
    ratio = sum((x - y) ** 2 for x, y in neighbours) / spread
    shape = 5 * size * (size + 1) * (size - 1) ** 2 / (2 * (size - 2) * (5 * size**2 - 2 * size - 9)) - 0.5
    return Autocorrelation(
        n=size, lag1=sum(x * y for x, y in neighbours) / spread, p_value=beta_tail(shape, shape, ratio / 4)
    )


def midranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 1. Equal values get the mean of their ranks."""
    ordered = sorted(values)
    first = {value: index for index, value in reversed([*enumerate(ordered)])}
    often = Counter(ordered)
    return [first[value] + (often[value] + 1) / 2 for value in values]


def _kendall_p(score: int, size: int, ties: Sequence[Sequence[int]]) -> float:
    if size <= _EXACT and all(count == 1 for group in ties for count in group):
        pairs = size * (size - 1) // 2
        least = (pairs - abs(score)) // 2
        return min(1.0, 2 * sum(_inversions(size)[: least + 1]) / factorial(size))
    variance = _kendall_variance(size, ties)
    if variance <= 0:
        return 1.0
    return erfc(max(0, abs(score) - 1) / sqrt(variance) / sqrt(2))


def _kendall_variance(size: int, ties: Sequence[Sequence[int]]) -> float:
    """Return the variance of the score, with ties in times and in values; Kendall 1975, section 4.4."""

    def total(count: int) -> int:
        return count * (count - 1) * (2 * count + 5)

    def pairs(group: Sequence[int]) -> int:
        return sum(count * (count - 1) for count in group)

    def triples(group: Sequence[int]) -> int:
        return sum(count * (count - 1) * (count - 2) for count in group)

    times, values = ties
    plain = (total(size) - sum(map(total, times)) - sum(map(total, values))) / 18
    both = pairs(times) * pairs(values) / (2 * size * (size - 1))
    return plain + both + triples(times) * triples(values) / (9 * size * (size - 1) * (size - 2))


@lru_cache(maxsize=64)
def _inversions(size: int) -> tuple[int, ...]:
    """Return how many orders of ``size`` items have 0, 1, … inversions: the coefficients of ∏ (1 + q + … + q^i)."""
    counts = [1]
    for extra in range(1, size):
        longer = [0] * (len(counts) + extra)
        for inversions, count in enumerate(counts):
            for more in range(extra + 1):
                longer[inversions + more] += count
        counts = longer
    return tuple(counts)


def _problem(values: Sequence[float], least: int) -> Reason | None:
    if not values:
        return Reason.NO_SAMPLES
    if not all(isfinite(value) for value in values):
        return Reason.NOT_FINITE
    return Reason.TOO_FEW_SAMPLES if len(values) < least else None
