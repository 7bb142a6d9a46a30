"""One sample of differences: Wilcoxon's signed-rank test and the exact interval that belongs to it.

Pure functions; they must not know what the numbers mean.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedRank:
    """The pseudo-median of differences; ``low`` to ``high`` covers it with ``coverage``."""

    center: float
    low: float
    high: float
    coverage: float
    p_value: float


def signed_rank(differences: Sequence[float], *, coverage: float) -> SignedRank | None:
    """Hodges–Lehmann estimate and exact interval from the Walsh averages; None if too few for ``coverage``.

    The estimate is the median of all means (dᵢ + dⱼ)/2, i ≤ j; the interval runs from the c-th smallest to
    the c-th largest of them (:func:`signed_rank_cut`). It assumes that the differences are symmetric about
    their centre, nothing else; with ties the coverage is at least the stated one. ``p_value`` is two-sided,
    for "the centre is 0"; ties count against a difference, so that it agrees with the closed interval.
    Source: Hollander & Wolfe, *Nonparametric Statistical Methods*, 2nd ed. 1999, sections 3.1–3.3.
    """
    size = len(differences)
    cut = signed_rank_cut(size, coverage)
    if cut == 0:
        return None
    averages = walsh_averages(differences)
    above, below = len(averages) - bisect_right(averages, 0), bisect_left(averages, 0)
    against = len(averages) - max(above, below)
    return SignedRank(
        center=statistics.median(averages), low=averages[cut - 1], high=averages[-cut],
        coverage=1 - 2 * lower_tail(size, cut - 1), p_value=min(1.0, 2 * lower_tail(size, against)),
    )  # fmt: skip


def walsh_averages(differences: Sequence[float]) -> list[float]:
    """The means of all pairs of differences, each with itself too, in ascending order."""
    return sorted([(x + y) / 2 for i, x in enumerate(differences) for y in differences[i:]])


@lru_cache(maxsize=4096)
def lower_tail(size: int, value: int) -> float:
    """P(T ≤ value) for the signed-rank statistic of ``size`` differences symmetric about 0. Exact.

    Source: Wilcoxon, Biometrics Bulletin 1 (1945) 80.
    """
    return sum(_counts(size)[: value + 1]) / (1 << size)


@lru_cache(maxsize=4096)
def signed_rank_cut(size: int, coverage: float) -> int:
    """The largest rank c with 1 − 2·P(T < c) ≥ coverage; 0 if there is none (95 % takes 6 differences)."""
    below, cut = 0, 0
    for count in _counts(size)[: (size * (size + 1) // 2 + 1) // 2]:
        below += count
        if 1 - 2 * below / (1 << size) < coverage:
            break
        cut += 1
    return cut


@lru_cache(maxsize=256)
def _counts(size: int) -> tuple[int, ...]:
    """How many sets of signs have T = 0, 1, …: coefficients of ∏ (1 + q^i), i = 1 … size."""
    counts = [1] + [0] * (size * (size + 1) // 2)
    for rank in range(1, size + 1):
        for total in range(len(counts) - 1, rank - 1, -1):
            counts[total] += counts[total - rank]
    return tuple(counts)
