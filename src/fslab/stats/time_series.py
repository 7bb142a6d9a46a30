"""Tests of a series in the order of measurement: its trend, whether values resemble the ones before, changes of level.

Deterministic: permutations come from a fixed seed. The caller decides how large a drift matters. None where values are
too few for the test, or one is not finite. scipy.stats has the same Kendall test (a test compares both), but without
ties in time, and it takes longer to load than a report takes to make. It has no Bartels test.
"""

import random
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, combinations, pairwise
from math import erfc, factorial, isfinite, sqrt

from fslab.stats.distributions import beta_tail

TREND_LEAST = 4
AUTOCORRELATION_LEAST = 8
_EXACT = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Trend:
    """The linear trend of a series.

    ``slope``: per unit of time (per value without times). ``change``: over the whole series, as a fraction of the
    median (0.08: 8 % up), None unless this is positive. ``p_value``: two-sided, for "there is no trend".
    """

    slope: float
    change: float | None
    p_value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Autocorrelation:
    """``lag1``: of ranks, from −1 to 1. ``p_value``: one-sided, for "no value resembles the one before it"."""

    lag1: float
    p_value: float


def trend(values: Sequence[float], times: Sequence[float] | None = None) -> Trend | None:
    """Return the Theil–Sen slope (the median of the slopes of all pairs) and the result of the Mann–Kendall test.

    The test is exact without ties and for up to 60 values. Otherwise it uses the normal approximation, with the
    variance for ties and a continuity correction, which is adequate from 10 values on. It assumes values that are
    independent except for the trend. ``times`` can be in any order. None with fewer than 4 values, or with one time
    only.
    Source: Mann, Econometrica 13 (1945) 245; Kendall, *Rank Correlation Methods*, 1975, chapter 4; Theil, Proc. Kon.
    Ned. Akad. v. Wetensch. A 53 (1950) 386; Sen, JASA 63 (1968) 1379.
    """
    when = range(len(values)) if times is None else times
    points = sorted(zip(when, values, strict=True))
    if _unusable(values, TREND_LEAST):
        return None
    slopes = [(y2 - y1) / (t2 - t1) for (t1, y1), (t2, y2) in combinations(points, 2) if t2 != t1]
    if not slopes:
        return None
    slope, middle = statistics.median(slopes), statistics.median(values)
    score = sum(each > 0 for each in slopes) - sum(each < 0 for each in slopes)
    change = slope * (points[-1][0] - points[0][0]) / middle if middle > 0 else None
    groups = [[*Counter(column).values()] for column in zip(*points, strict=True)]
    return Trend(slope=slope, change=change, p_value=_kendall_p(score, len(values), groups))


def autocorrelation(values: Sequence[float]) -> Autocorrelation | None:
    """Test whether neighbours resemble each other, with Bartels' rank version of von Neumann's ratio.

    It uses ranks, so that one outlier neither causes nor hides autocorrelation. Its beta approximation is good from 8
    values on. Drift also makes neighbours similar, so check :func:`trend` first.
    Source: Bartels, JASA 77 (1982) 40; von Neumann, Ann. Math. Statist. 12 (1941) 367.
    """
    size = len(values)
    if _unusable(values, AUTOCORRELATION_LEAST):
        return None
    ranks = midranks(values)
    centred = [rank - (size + 1) / 2 for rank in ranks]
    spread = sum(value * value for value in centred)
    if spread == 0:
        return None
    neighbours = [*pairwise(centred)]
    ratio = sum((x - y) ** 2 for x, y in neighbours) / spread
    shape = 5 * size * (size + 1) * (size - 1) ** 2 / (2 * (size - 2) * (5 * size**2 - 2 * size - 9)) - 0.5
    return Autocorrelation(
        lag1=sum(x * y for x, y in neighbours) / spread, p_value=beta_tail(shape, shape, ratio / 4)
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


def _unusable(values: Sequence[float], least: int) -> bool:
    return len(values) < least or not all(map(isfinite, values))


_PERMUTATIONS = 999
_CLIP = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangePoint:
    """A change of level. ``index``: first value of the new level. ``before``, ``after``: medians of the two levels.

    ``ratio`` is after/before; None unless both are positive.
    """

    index: int
    before: float
    after: float
    ratio: float | None
    p_value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Steadiness:
    """The steadiness of a rate over time: its trend, and its changes of level (indices count batches).

    ``largest_shift``: the distance between the highest and the lowest level as a fraction of the median (0 with one
    level; None if the median is not positive).
    """

    trend: Trend | None
    changes: tuple[ChangePoint, ...]
    largest_shift: float | None


def change_points(values: Sequence[float], *, alpha: float = 0.01, least: int = 3) -> tuple[ChangePoint, ...]:
    """Return the places where the level changes, each significant at ``alpha``. A level has at least ``least`` values.

    A level is a stretch, at either end or inside, that differs most from all other values. Its statistic is |S|/√(m(n −
    m)/n), where S is the sum of its m values minus m times the mean of all. The p-value is that of the largest
    statistic, over random orders of the same values. If it is significant, the ends of the stretch are changes (of two
    ends, those across which the values differ), and each part is searched in the same way.

    Outliers are clipped, so that one outlier neither causes nor hides a change. Stretches are tested, not only splits,
    so that a level that goes up and down again is found. The values must be independent except for the changes. A trend
    also appears as a change. At 1 %, 12 values are needed to detect a change in the middle, and 20 to detect one before
    the last four. Raises ValueError for invalid parameters.
    Source: Olshen et al., Biostatistics 5 (2004) 557 (circular binary segmentation); permutations as in James &
    Matteson's e.divisive, J. Stat. Softw. 62 (2014) 7, and its use on benchmarks, Daly et al., ICPE 2020, 67.
    """
    if least < 1 or not 0 < alpha < 1:
        raise ValueError(f"invalid parameters least={least}, alpha={alpha}")
    if not all(isfinite(value) for value in values):
        return ()
    splits = sorted(_splits(values, 0, alpha, least))
    bounds = [0, *(index for index, _ in splits), len(values)]
    levels = [statistics.median(values[start:end]) for start, end in pairwise(bounds) if end]
    return tuple(
        ChangePoint(
            index=index, before=before, after=after, p_value=p_value,
            ratio=after / before if before > 0 and after > 0 else None,
        )
        for (index, p_value), before, after in zip(splits, levels, levels[1:], strict=False)
    )  # fmt: skip


def drifts(values: Sequence[float], index: int) -> bool:
    """Return whether a straight line fits the values better than two levels with a change at ``index``.

    The line has the Theil–Sen slope, the levels are medians; better is the smaller sum of distances. A test that looks
    for a change finds one in a drift too, about in its middle.
    """
    found = trend(values)
    if found is None:
        return False
    parts = (
        [value - found.slope * place for place, value in enumerate(values)],
        values[:index],
        values[index:],
    )
    line, *levels = (sum(abs(value - statistics.median(part)) for value in part) for part in parts)
    return line < sum(levels)


def steadiness(values: Sequence[float], *, batches: int = 16) -> Steadiness | None:
    """Return trend and changes of level within one trial, from a rate that was sampled over time.

    Samples of one run resemble their neighbours, so that tests on them would find changes everywhere. Therefore the
    tests use the means of ``batches`` equal stretches (Law & Kelton, *Simulation Modeling and Analysis*, 3rd ed. 2000,
    section 9.5). The remaining correlation makes p-values too small; so also require a shift of relevant size. Each
    batch needs at least two samples; a remainder is left out at the beginning.
    """
    length = len(values) // batches
    if _unusable(values, 2 * batches):
        return None
    start = len(values) - length * batches
    means = [statistics.fmean(values[begin : begin + length]) for begin in range(start, len(values), length)]
    found = change_points(means, least=max(2, batches // 4))
    middle = statistics.median(means)
    levels = [found[0].before, *(change.after for change in found)] if found else [middle]
    shift = (max(levels) - min(levels)) / middle if middle > 0 else None
    return Steadiness(trend=trend(means), changes=found, largest_shift=shift)


def _splits(values: Sequence[float], offset: int, alpha: float, least: int) -> list[tuple[int, float]]:
    clipped = _clipped(values)
    found = _best_stretch(clipped, least)
    if found is None:
        return []
    size, start, end = found
    p_value = _permutation_p(clipped, lambda order: (_best_stretch(order, least) or (0.0,))[0], size, alpha)
    if p_value > alpha:
        return []
    ends = [place for place in (start, end) if 0 < place < len(values)]
    if len(ends) == 2:
        parts = (values[:end], start), (values[start:], end - start)
        ends = [place for place, part in zip(ends, parts, strict=True) if _differ(*part, alpha)]
    bounds = [0, *ends, len(values)]
    return [
        *((offset + place, p_value) for place in ends),
        *(
            split
            for first, last in pairwise(bounds)
            if ends
            for split in _splits(values[first:last], offset + first, alpha, least)
        ),
    ]


def _clipped(values: Sequence[float]) -> list[float]:
    """Return the values, clipped at four times the noise from the median. Neighbours show the noise at any level.

    The median of |x − y| is 0.954 standard deviations for two normal values x and y. If most neighbours are equal, this
    gives 0, and ranks are returned instead.
    """
    noise = statistics.median([abs(y - x) for x, y in pairwise(values)] or [0.0]) / 0.954
    if noise == 0:
        return midranks(values)
    middle = statistics.median(values)
    return [min(max(value, middle - _CLIP * noise), middle + _CLIP * noise) for value in values]


def _best_stretch(values: Sequence[float], least: int) -> tuple[float, int, int] | None:
    """Return the largest statistic and its stretch (start, end); None if there is no room for two levels.

    A stretch starts at 0 or at ``least`` or later, and ends at least ``least`` before the end. A stretch at the end is
    left out, because it is equivalent to the one before it.
    """
    size = len(values)
    mean = statistics.fmean(values) if values else 0.0
    sums = [0.0, *accumulate(value - mean for value in values)]
    best: tuple[float, int, int] | None = None
    for length in range(least, size - least + 1):
        scale = sqrt(length * (size - length) / size)
        starts = [0, *range(least, size - least - length + 1)]
        start = max(starts, key=lambda begin: abs(sums[begin + length] - sums[begin]))
        statistic = abs(sums[start + length] - sums[start]) / scale
        if best is None or statistic > best[0]:
            best = statistic, start, start + length
    return best


def _differ(values: Sequence[float], split: int, alpha: float) -> bool:
    """Return whether the values before and after ``split`` differ, by a rank-sum test with permutations."""
    ranks = midranks(values)

    def statistic(order: Sequence[float]) -> float:
        return abs(sum(order[:split]) - split * (len(order) + 1) / 2)

    return _permutation_p(ranks, statistic, statistic(ranks), alpha) <= alpha


def _permutation_p(
    values: Sequence[float], statistic: Callable[[Sequence[float]], float], observed: float, alpha: float
) -> float:
    """Return (1 + orders that reach ``observed``) / (1 + orders tried); 1 as soon as it must exceed ``alpha``."""
    generator = random.Random(len(values))  # noqa: S311 - no secret
    order, reached = [*values], 0
    for _ in range(_PERMUTATIONS):
        generator.shuffle(order)
        reached += statistic(order) >= observed * (1 - 1e-12)
        if (1 + reached) / (1 + _PERMUTATIONS) > alpha:
            return 1.0
    return (1 + reached) / (1 + _PERMUTATIONS)
