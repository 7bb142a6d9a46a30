"""Finds where a series changes its level: over the blocks of a campaign, over campaigns, or within a trial.

Pure functions, deterministic (permutations come from a fixed seed); they must not know what the numbers mean.
"""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isfinite, sqrt

from fslab.stats import Reason
from fslab.stats.trial_order_tests import Trend, midranks, trend

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
    level; None if unknown).
    """

    n: int
    trend: Trend | None = None
    changes: tuple[ChangePoint, ...] = ()
    largest_shift: float | None = None
    reason: Reason | None = None


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


def steadiness(values: Sequence[float], *, batches: int = 16) -> Steadiness:
    """Return trend and changes of level within one trial, from a rate that was sampled over time.

    Samples of one run resemble their neighbours, so that tests on them would find changes everywhere. Therefore the
    tests use the means of ``batches`` equal stretches (Law & Kelton, *Simulation Modeling and Analysis*, 3rd ed. 2000,
    section 9.5). The remaining correlation makes p-values too small; so also require a shift of relevant size. Each
    batch needs at least two samples; a remainder is left out at the beginning.
    """
    length = len(values) // batches
    if length < 2:
        return Steadiness(n=len(values), reason=Reason.TOO_FEW_SAMPLES if values else Reason.NO_SAMPLES)
    if not all(isfinite(value) for value in values):
        return Steadiness(n=len(values), reason=Reason.NOT_FINITE)
    start = len(values) - length * batches
    means = [statistics.fmean(values[begin : begin + length]) for begin in range(start, len(values), length)]
    found = change_points(means, least=max(2, batches // 4))
    middle = statistics.median(means)
    levels = [found[0].before, *(change.after for change in found)] if found else [middle]
    shift = (max(levels) - min(levels)) / middle if middle > 0 else None
    return Steadiness(n=len(values), trend=trend(means), changes=found, largest_shift=shift)


def _splits(values: Sequence[float], offset: int, alpha: float, least: int) -> list[tuple[int, float]]:
    clipped = _clipped(values)
    found = _best_stretch(clipped, least)
    if found is None:
        return []
    size, start, end = found
    p_value = _permutation_p(clipped, lambda order: _most(_best_stretch(order, least)), size, alpha)
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


def _most(stretch: tuple[float, int, int] | None) -> float:
    return stretch[0] if stretch else 0.0


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
