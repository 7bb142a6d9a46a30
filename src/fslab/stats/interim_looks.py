"""Repeated looks at a comparison (interim analyses), with an error rate as low as that of a single look.

Computes after how many blocks to look, how wide the interval of each look must be, and the p-value over all looks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp, log, pi, sqrt
from typing import TYPE_CHECKING

from fslab.stats.estimate_model import INDEPENDENCE_LEAST, RatioEstimate
from fslab.stats.paired_differences import compare_blocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Shares of the allowed error: 0.90·n/most is spent up to the look at n of ``most`` blocks. Looks beyond ``most``
# approach 0.95, but do not reach it. The rest is a reserve for t statistics of few blocks: from look to look they are
# less similar than the normal theory below assumes, and simulated errors are 1.05 times as frequent as was spent.
SPENT, BEYOND = 0.90, 0.05
FIRST_LEAST = 3  # fewer blocks give no interval
_NODES = 64
_BATCH = 8
_GRID = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True, kw_only=True, slots=True)
class Looks:
    """The schedule of looks at a comparison, and the share of the error of each look.

    The first look is after ``first`` blocks (at least 3). The following numbers of blocks grow by the factor ``growth``
    up to ``most``, with one look at 20: 4, 5, 6, 8, 10, 12, 15, 20, 25, 31, 40. Beyond ``most`` the schedule goes on in
    the same way, for a campaign that is extended. Over all looks together, intervals with the coverage
    :meth:`coverage_at` miss the truth with a probability of at most 1 − ``coverage``. Everything is computed from these
    numbers and the number of blocks, so that a campaign can be stopped and resumed.
    Source: error spending by Lan & DeMets, Biometrika 70 (1983) 659; in proportion to the sample as there and by Kim &
    DeMets, Biometrika 74 (1987) 149; the same levels used for t by Pocock, Biometrika 64 (1977) 191; Jennison &
    Turnbull, *Group Sequential Methods*, 2000, chapters 4, 7 and 9.
    """

    first: int = 4
    most: int = 40
    growth: float = 1.25
    coverage: float = 0.95

    def __post_init__(self) -> None:
        if self.first < 1 or self.most < 1 or not self.growth > 1 or not 0 < self.coverage < 1:
            raise ValueError(f"invalid looks: {self}")

    def at(self, number: int) -> int:
        """Return the number of blocks at look ``number``, which counts from 0."""
        return _schedule(self.first, self.most, self.growth, number + 1)[number]

    def first_from(self, blocks: int) -> int:
        """Return the number of blocks at the first look with at least ``blocks``."""
        return self.at(self._number(blocks))

    def next_after(self, blocks: int) -> int:
        """Return the number of blocks at the look that follows one after ``blocks``.

        A look between two looks of the schedule took the place of the next one, so that this is the one after that.
        """
        return self.at(self._number(blocks) + 1) if blocks >= self.at(0) else self.at(0)

    def coverage_at(self, blocks: int) -> float:
        """Return the coverage that the interval of a look after ``blocks`` finished blocks must have.

        A look between two looks of the schedule (at a time limit, or for an early report) takes the place of the next
        one.
        """
        return 1 - self._level(1 - self.coverage, self._number(blocks))

    def overall(self, p_value: float, blocks: int) -> float:
        """Return the p-value over all looks that corresponds to one look's p-value.

        It is the smallest error α over all looks at which this look would have shown a difference. Between the values
        of α that are computed, it is interpolated on logarithms. Below the smallest, it is proportional.
        """
        number = self._number(blocks)
        grid = sorted({*_GRID, 1 - self.coverage}, reverse=True)
        levels = [(self._level(alpha, number), alpha) for alpha in grid]
        if p_value >= levels[0][0]:
            return 1.0
        for (above, high), (below, low) in pairwise(levels):
            if p_value >= below:
                share = log(p_value / below) / log(above / below)
                return low * exp(share * log(high / low))
        below, low = levels[-1]
        return low * p_value / below

    def _number(self, blocks: int) -> int:
        number = 0
        while self.at(number) < blocks:
            number += 1
        return number

    def _level(self, error: float, number: int) -> float:
        count = (number // _BATCH + 1) * _BATCH
        return _levels(_schedule(self.first, self.most, self.growth, count), self.most, error)[number]


def compare_at_look(
    a: Mapping[int, float], b: Mapping[int, float], *, looks: Looks, blocks: int | None = None,
    compare: Callable[..., RatioEstimate] = compare_blocks,
) -> RatioEstimate:  # fmt: skip
    """Return :func:`compare_blocks`, or what another function says of values by block, at a look.

    ``coverage`` and ``p_value`` of the result are over all looks. ``blocks``: the number of blocks that were finished
    at the look, including those in which a trial failed. By default it is the last block that both have (blocks count
    from 0). This is also right for a comparison that got no more trials after it was settled.
    """
    if blocks is None:
        blocks = 1 + max(a.keys() & b.keys(), default=max(len(a), len(b)) - 1)
    found = compare(a, b, coverage=looks.coverage_at(blocks))
    p_value, correlated = (
        None if each is None else looks.overall(each, blocks)
        for each in (found.p_value, found.p_if_correlated)
    )
    return dataclasses.replace(found, coverage=looks.coverage, p_value=p_value, p_if_correlated=correlated)


@lru_cache(maxsize=256)
def _schedule(first: int, most: int, growth: float, count: int) -> tuple[int, ...]:
    found = [max(first, FIRST_LEAST)]
    while len(found) < count:
        following = max(found[-1] + 1, round(found[-1] * growth))
        # No look shortly before these sizes: it would spend error, but save hardly any blocks.
        ends = [
            size
            for size in (INDEPENDENCE_LEAST, most)
            if found[-1] < size < growth * sqrt(growth) * found[-1]
        ]
        found.append(min(ends, default=following))
    return tuple(found)


@lru_cache(maxsize=512)
def _levels(looks: tuple[int, ...], most: int, error: float) -> tuple[float, ...]:
    """Return the two-sided level of each look, such that all looks together have an error of at most ``error``.

    Considers the sums of n independent normal values that no look has found too large. Quadrature computes their
    distribution from look to look. The level of a look is such that it finds a sum too large with exactly the
    probability to be spent there.
    Source: Armitage, McPherson & Rowe, J. R. Statist. Soc. A 132 (1969) 235.
    """
    import numpy as np
    from scipy.special import ndtr

    points, weights = np.polynomial.legendre.leggauss(_NODES)
    levels: list[float] = []
    spent, nodes, masses, before = 0.0, np.zeros(1), np.ones(1), 0
    for size in looks:
        allowed, step = error * _spending(size, most), sqrt(size - before)

        limit = _limit(nodes, masses, step, allowed - spent)
        levels.append(float(2 * ndtr(-limit / sqrt(size))))
        fresh = limit * points
        density = np.exp(-0.5 * ((fresh[:, None] - nodes) / step) ** 2) / step / sqrt(2 * pi)
        masses, nodes = limit * weights * (density @ masses), fresh
        spent, before = allowed, size
    return tuple(levels)


def _limit(nodes: NDArray[np.float64], masses: NDArray[np.float64], step: float, wanted: float) -> float:
    """Return the limit that the absolute value of sums exceeds with probability ``wanted``, by bisection."""
    from scipy.special import ndtr

    def beyond(limit: float) -> float:
        return float((masses * (ndtr((nodes - limit) / step) + ndtr((-limit - nodes) / step))).sum())

    low: float = 0.0
    high: float = step
    while beyond(high) > wanted:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > wanted else (low, middle)
    return high


def _spending(size: int, most: int) -> float:
    if size <= most:
        return float(SPENT * size / most)
    return SPENT + BEYOND * (1 - most / size)
