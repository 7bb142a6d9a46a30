"""Looking at a comparison again and again, without being wrong more often than one look would be.

Says after how many blocks to look, how wide the interval of each look must be, and what one look's p-value is
worth over all looks. Pure functions; they must not know what is measured, nor decide what to run next.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp, log, pi, sqrt
from typing import TYPE_CHECKING

from fslab.stats.compare import INDEPENDENCE_LEAST, RatioEstimate
from fslab.stats.noise_prior import NoisePrior
from fslab.stats.paired import compare_blocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Of the error allowed, 0.90·n/most is spent up to the look at n of ``most`` blocks, and 0.95 never quite reached
# by going on beyond them. The rest pays for t statistics of few blocks, which are less alike from look to look than
# the normal theory below says: simulated, they err 1.05 times as often as was spent.
SPENT, BEYOND = 0.90, 0.05
FIRST_LEAST = 4  # at the level of a first look three blocks have too wide an interval to be worth the error
_NODES = 64
_BATCH = 8
_GRID = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True, kw_only=True, slots=True)
class Looks:
    """When a comparison is looked at, and with what share of the error.

    First after ``first`` blocks (not before 4), then after numbers of blocks that grow by ``growth`` up to ``most``,
    with one at 20: 4, 5, 6, 8, 10, 12, 15, 20, 25, 31, 40; and on alike from there, should a campaign be given more.
    Over all looks together, an interval of the look's :meth:`coverage_at` misses the truth with probability
    1 − ``coverage`` at most. All follows from these numbers and the blocks there are, so that a campaign can be
    stopped and taken up again.
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
        """The number of blocks at look ``number``, which counts from 0."""
        return _schedule(self.first, self.most, self.growth, number + 1)[number]

    def next_after(self, blocks: int) -> int:
        """The number of blocks at the first look after ``blocks``."""
        return self.at(self._number(blocks + 1))

    def coverage_at(self, blocks: int) -> float:
        """What the interval of the look after ``blocks`` finished blocks must cover.

        A look between two of the schedule (the time was up, somebody wants a report meanwhile) takes the
        next one's place.
        """
        return 1 - self._level(1 - self.coverage, self._number(blocks))

    def overall(self, p_value: float, blocks: int) -> float:
        """One look's p-value as a p-value over all looks: at most α where an interval of this look says so.

        It is the smallest error α, over all looks, at which this look would have seen a difference; between the
        values of α that are worked out, interpolated on logarithms. Below the smallest, in proportion.
        """
        number = self._number(blocks)
        levels = [(self._level(alpha, number), alpha) for alpha in self._grid()]
        if p_value >= levels[0][0]:
            return 1.0
        for (above, high), (below, low) in pairwise(levels):
            if p_value >= below:
                share = log(p_value / below) / log(above / below)
                return low * exp(share * log(high / low))
        below, low = levels[-1]
        return low * p_value / below

    def _grid(self) -> tuple[float, ...]:
        return tuple(sorted({*_GRID, 1 - self.coverage}, reverse=True))

    def _number(self, blocks: int) -> int:
        number = 0
        while self.at(number) < blocks:
            number += 1
        return number

    def _level(self, error: float, number: int) -> float:
        count = (number // _BATCH + 1) * _BATCH
        return _levels(_schedule(self.first, self.most, self.growth, count), self.most, error)[number]


def compare_at_look(
    a: Mapping[int, float],
    b: Mapping[int, float],
    *,
    looks: Looks,
    blocks: int | None = None,
    prior: NoisePrior | None = None,
) -> RatioEstimate:
    """:func:`compare_blocks` at a look: ``coverage`` and ``p_value`` of the answer are over all looks.

    ``blocks`` is the number of blocks that were finished at the look, counted with those in which a trial
    failed; by default up to the last block that both have (blocks count from 0), which is also right for a
    comparison that got no more trials when it was settled.
    """
    if blocks is None:
        blocks = 1 + max(a.keys() & b.keys(), default=max(len(a), len(b)) - 1)
    found = compare_blocks(a, b, coverage=looks.coverage_at(blocks), prior=prior)
    p_value = None if found.p_value is None else looks.overall(found.p_value, blocks)
    return dataclasses.replace(found, coverage=looks.coverage, p_value=p_value)


@lru_cache(maxsize=256)
def _schedule(first: int, most: int, growth: float, count: int) -> tuple[int, ...]:
    found = [max(first, FIRST_LEAST)]
    while len(found) < count:
        following = max(found[-1] + 1, round(found[-1] * growth))
        # No look shortly before these: it would spend error, and spare no block worth mentioning.
        ends = [
            size
            for size in (INDEPENDENCE_LEAST, most)
            if found[-1] < size < growth * sqrt(growth) * found[-1]
        ]
        found.append(min(ends, default=following))
    return tuple(found)


@lru_cache(maxsize=512)
def _levels(looks: tuple[int, ...], most: int, error: float) -> tuple[float, ...]:
    """The two-sided level of each look, such that the looks together err with at most ``error``.

    The sums of n independent normal values that no look has found too large are followed from look to look
    by quadrature; each level is where just as many are found as may be spent there.
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
    """The value that sums exceed in size, one way or the other, with probability ``wanted``; by halving."""
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
