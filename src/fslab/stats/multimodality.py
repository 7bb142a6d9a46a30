"""Tests whether a sample has more than one mode, for example because trials met one of two states of a machine.

scipy has no dip test.
"""

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, sqrt
from typing import NamedTuple

LEAST = 8
_LEVELS = (0.1, 0.05, 0.01, 0.001)
# √n times the dip that uniform samples of n values exceed with probability 10 %, 5 %, 1 %, 0.1 %: quantiles of
# 200,000 simulated samples of each size.
_TABLE = {
    8: (0.4019, 0.4360, 0.4897, 0.5510),
    9: (0.4092, 0.4396, 0.4919, 0.5642),
    10: (0.4127, 0.4416, 0.5045, 0.5701),
    11: (0.4140, 0.4440, 0.5118, 0.5771),
    12: (0.4158, 0.4505, 0.5151, 0.5869),
    14: (0.4237, 0.4569, 0.5221, 0.5958),
    16: (0.4280, 0.4613, 0.5299, 0.6070),
    20: (0.4348, 0.4704, 0.5386, 0.6195),
    25: (0.4413, 0.4770, 0.5479, 0.6308),
    30: (0.4472, 0.4830, 0.5560, 0.6389),
    40: (0.4539, 0.4911, 0.5664, 0.6540),
    60: (0.4628, 0.5011, 0.5779, 0.6715),
    100: (0.4711, 0.5108, 0.5907, 0.6919),
    200: (0.4811, 0.5214, 0.6045, 0.7060),
    500: (0.4888, 0.5310, 0.6136, 0.7146),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Dip:
    """The result of a dip test. ``p_value``: an upper bound (0.001, 0.01, 0.05, 0.1 or 1), for "one mode".

    ``levels``: the medians below and above the widest gap. They are the two levels, if there are two.
    """

    p_value: float
    levels: tuple[float, float]


def dip(values: Sequence[float]) -> Dip | None:
    """Apply Hartigans' dip test: how far the sample's distribution is from the nearest one with a single mode.

    The p-value is for uniform samples, which have the largest dip of all single-mode shapes. None with fewer than 8
    *different* values, because a metric with coarse steps has a dip at every step. A mode that has less than three
    tenths of 10 values, or a quarter of 20, is not detected at 5 %.
    Source: Hartigan & Hartigan, Ann. Statist. 13 (1985) 70.
    """
    if len(set(values)) < LEAST or not all(map(isfinite, values)):
        return None
    ordered = sorted(values)
    return Dip(p_value=_bound(dip_statistic(ordered), len(values)), levels=_beside_widest_gap(ordered))


def dip_statistic(ordered: Sequence[float]) -> float:
    """Return the dip of values in ascending order, between 1/(2n) and 1/4.

    The best single-mode distribution follows the greatest convex minorant of the empirical distribution up to the mode,
    and its least concave majorant after it. The interval that contains the mode begins with all values. It is narrowed
    to where minorant and majorant are farthest apart, as long as this distance is larger than the dip outside of the
    interval.
    """
    corners = _corners(ordered)
    low, high, worst = 0, len(corners) - 1, 1.0
    while True:
        below = _hull(corners, low, high, lower=True)
        above = _hull(corners, low, high, lower=False)
        apart, start, end = _farthest(corners, below, above)
        if apart <= worst:
            break
        left = (corners[k].upper - below.at[k] for k in range(low, start))
        right = (above.at[k] - corners[k].lower for k in range(end + 1, high + 1))
        worst = max([worst, *left, *right])
        if start == end:
            break  # the mode is one value, which makes no dip even if it occurs often
        low, high = start, end
    return worst / (2 * len(ordered))


class _Corner(NamedTuple):
    """A value, with the number of values below it (``lower``), and below or equal to it (``upper``)."""

    value: float
    lower: int
    upper: int


class _Hull(NamedTuple):
    """A hull: the indices that it touches, and its height at every index between them."""

    touching: list[int]
    at: dict[int, float]


def _corners(ordered: Sequence[float]) -> list[_Corner]:
    return [
        _Corner(value, bisect_left(ordered, value), bisect_right(ordered, value))
        for value in dict.fromkeys(ordered)
    ]


def _hull(corners: Sequence[_Corner], low: int, high: int, *, lower: bool) -> _Hull:
    """Return the convex hull from below of the lower corners, or from above of the upper corners."""
    heights = [corner.lower if lower else corner.upper for corner in corners]
    sign = 1 if lower else -1

    def slope(first: int, second: int) -> float:
        return sign * (heights[second] - heights[first]) / (corners[second].value - corners[first].value)

    touching, slopes = [low], [-inf]  # with the slope of the line that leads to each
    for index in range(low + 1, high + 1):
        steep = slope(touching[-1], index)
        while len(touching) > 1 and steep <= slopes[-1]:
            touching.pop()
            slopes.pop()
            steep = slope(touching[-1], index)
        touching.append(index)
        slopes.append(steep)
    at = {low: float(heights[low])}
    for first, second in pairwise(touching):
        rise = sign * slope(first, second)
        for k in range(first + 1, second):
            at[k] = heights[first] + rise * (corners[k].value - corners[first].value)
        at[second] = float(heights[second])
    return _Hull(touching, at)


def _farthest(corners: Sequence[_Corner], below: _Hull, above: _Hull) -> tuple[float, int, int]:
    """Return the largest distance between the hulls, and the touching points that enclose its place."""
    best, start, end = -1.0, 0, 0
    for k in below.touching:
        if above.at[k] - corners[k].lower > best:
            best, start, end = above.at[k] - corners[k].lower, k, next(j for j in above.touching if j >= k)
    for k in above.touching:
        if corners[k].upper - below.at[k] > best:
            best, end = corners[k].upper - below.at[k], k
            start = next(j for j in reversed(below.touching) if j <= k)
    return best, start, end


def _bound(statistic: float, size: int) -> float:
    """Return the smallest tabulated level whose critical value is reached; 1 if none is reached.

    Critical values are interpolated in √n times the dip, which hardly changes with n.
    """
    from numpy import interp

    columns = zip(_LEVELS, zip(*_TABLE.values(), strict=True), strict=True)
    critical = {level: float(interp(size, [*_TABLE], column)) / sqrt(size) for level, column in columns}
    return min((level for level, least in critical.items() if statistic >= least), default=1.0)


def _beside_widest_gap(ordered: Sequence[float]) -> tuple[float, float]:
    _, split = max((second - first, k + 1) for k, (first, second) in enumerate(pairwise(ordered)))
    return statistics.median(ordered[:split]), statistics.median(ordered[split:])
