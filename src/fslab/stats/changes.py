"""Where a series of values changes its level: over the blocks of a campaign, over campaigns, within a trial.

Pure functions, deterministic (permutations come from a fixed seed); they must not know what the numbers mean.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isfinite, sqrt

from fslab.stats import Reason
from fslab.stats.series import Trend, midranks, trend

_PERMUTATIONS = 1999


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangePoint:
    """``index`` is the first value of the new level; ``before`` and ``after`` are medians of the two levels.

    ``ratio`` is after/before, None unless both are positive.
    """

    index: int
    before: float
    after: float
    ratio: float | None
    p_value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Steadiness:
    """Of a rate over time: its trend, its changes of level (indices count batches), and how far apart the
    highest and lowest level are as a fraction of the median (0 with one level; None if not known).
    """  # fmt: skip

    n: int
    trend: Trend | None = None
    changes: tuple[ChangePoint, ...] = ()
    largest_shift: float | None = None
    reason: Reason | None = None


def change_points(values: Sequence[float], *, alpha: float = 0.01, least: int = 3) -> tuple[ChangePoint, ...]:
    """The places where the level changes, each significant at ``alpha``; levels have ``least`` values or more.

    A split is where the ranks before and after differ most, |Sₜ|/√(t(n − t)/n) with Sₜ the sum of the first t
    ranks less their expectation; its p-value is that of the largest over random orders of the same values.
    Where it is significant, both halves are searched alike. Ranks, so that one odd value is no change. The
    values must be independent but for the changes. A trend also shows up as a change. About 10 values
    are needed for a change at 1 % to be seen at all.
    Source: Pettitt, Appl. Statist. 28 (1979) 126; splitting and permutations as in James & Matteson's
    e.divisive, J. Stat. Softw. 62 (2014) 7, and its use on benchmarks: Daly et al., ICPE 2020, 67.
    """
    if least < 1 or not 0 < alpha < 1:
        raise ValueError(f"no change points with least={least}, alpha={alpha}")
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
    """Trend and changes of level within one trial, from a rate that was sampled over time.

    Samples of one run resemble their neighbours, so that tests on them would see changes everywhere: they
    are made on the means of ``batches`` equal stretches (Law & Kelton, *Simulation Modeling and Analysis*, 3rd
    ed. 2000, section 9.5). What remains of the resemblance makes p-values too small; ask for a shift that
    matters, too. At least two samples for each batch; what does not divide is left out at the beginning.
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
    split = _best_split(midranks(values), least)
    if split is None:
        return []
    index, size = split
    p_value = _permutation_p(midranks(values), size, alpha, least)
    if p_value > alpha:
        return []
    return [
        *_splits(values[:index], offset, alpha, least),
        (offset + index, p_value),
        *_splits(values[index:], offset + index, alpha, least),
    ]


def _best_split(ranks: Sequence[float], least: int) -> tuple[int, float] | None:
    """Where to split and how large the statistic is there; None if the halves would be too short."""
    size = len(ranks)
    if size < 2 * least:
        return None
    sums = [*accumulate(rank - (size + 1) / 2 for rank in ranks)]
    return max(
        ((t, abs(sums[t - 1]) / sqrt(t * (size - t) / size)) for t in range(least, size - least + 1)),
        key=lambda entry: entry[1],
    )


def _permutation_p(ranks: list[float], observed: float, alpha: float, least: int) -> float:
    """(1 + how many orders reach it) / (1 + orders tried); stops as soon as it must exceed ``alpha``."""
    generator = random.Random(f"{len(ranks)}:{least}")  # noqa: S311 - no secret
    order, reached = [*ranks], 0
    for _ in range(_PERMUTATIONS):
        generator.shuffle(order)
        split = _best_split(order, least)
        reached += split is not None and split[1] >= observed * (1 - 1e-12)
        if (1 + reached) / (1 + _PERMUTATIONS) > alpha:
            return 1.0
    return (1 + reached) / (1 + _PERMUTATIONS)
