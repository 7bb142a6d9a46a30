"""Finds series that go up or down relative to the others of their group, such as one stack among several. Pure.

What changes all of a group in a block cancels. Deterministic. The caller decides how large a change matters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import expm1, sqrt
from operator import mul
from statistics import NormalDist, median

from fslab.stats.time_series import Trend, trend

BLOCKS_LEAST = 5  # five blocks that all change in one direction have p = 2/5! = 0.017
_ROUNDS = 5  # of median polish: more change nothing that matters here

Logs = Mapping[int, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class RelativeDrift:
    """One series of a group that goes one way relative to the others. ``group``, ``member``: indices of both.

    ``change``: of its level from its first to its last block, as a fraction (-0.12: 12 % down). ``p_value``: corrected
    for all series of all groups. ``blocks``: the number of blocks that were used.
    """

    group: int
    member: int
    change: float
    p_value: float
    blocks: int


def relative_drifts(
    groups: Sequence[Sequence[Logs]], *, alpha: float = 0.05, least: float = 0.0
) -> tuple[RelativeDrift, ...]:
    """Return the series that go one way relative to the others of their group, with the changes of ``least`` or more.

    ``groups``: logarithms of values, by block. The level of a block is the median of the others' values in it, each
    relative to its own median (median polish: Tukey, *Exploratory Data Analysis*, 1977). The series relative to these
    levels is tested with Mann–Kendall, which assumes no distribution; in a group of two this is one test, and the
    series is the one that changes more by itself. The p-values of all series share ``alpha`` (Bonferroni). A series
    that is found is left out when the others of its group are tested.

    Trials that resemble the ones before also go one way for some time. So the test's normal score is divided by the
    factor by which an autocorrelation widens the scatter of a slope. The autocorrelation is the upper limit of that of
    all groups together, or of the series if that is clearly larger, beside their trends; 0.5 where too few values show
    it. Simulated in docs/simulations.md.
    """
    usable = [
        {index: logs for index, logs in enumerate(group) if len(logs) >= BLOCKS_LEAST} for group in groups
    ]
    tests = sum(len(own) if len(own) > 2 else len(own) // 2 for own in usable)
    found: list[RelativeDrift] = []
    for number, members in enumerate(usable):
        left = dict(members)
        while len(left) > 1:
            relative = {index: _relative(index, left) for index in left}
            lines = {index: line for index, own in relative.items() if (line := _trend(own)) is not None}
            # Of equal p-values, the larger slope: the others go the opposite way relative to it, but less.
            best = min(
                lines, key=lambda index: (lines[index].p_value, -abs(lines[index].slope)), default=None
            )
            if best is None or lines[best].p_value * tests > alpha:
                break
            along = _along([[*each.values()] for each in usable], relative[best])
            factor = _widening(len(relative[best]), along)
            p_value = min(1.0, tests * _widened(lines[best].p_value, factor))
            if len(left) == 2:
                best = max(lines, key=lambda index: abs(_change(left[index], _trend(left[index]))))
            change = expm1(_change(relative[best], lines[best]))
            if p_value > alpha or abs(change) < least:
                break
            blocks = len(relative[best])
            found.append(
                RelativeDrift(group=number, member=best, change=change, p_value=p_value, blocks=blocks)
            )
            del left[best]
    return tuple(found)


def _relative(index: int, members: Mapping[int, Logs]) -> Logs:
    """Return one member relative to the others, in the blocks that they have."""
    levels = _levels([logs for other, logs in members.items() if other != index])
    return {block: value - levels[block] for block, value in members[index].items() if block in levels}


def _trend(logs: Logs) -> Trend | None:
    """Return the trend; None with too few blocks."""
    return trend([*logs.values()], [*map(float, logs)]) if len(logs) >= BLOCKS_LEAST else None


def _change(logs: Logs, line: Trend | None) -> float:
    return 0.0 if line is None else line.slope * (max(logs) - min(logs))


def _levels(members: Sequence[Logs]) -> dict[int, float]:
    """Return the level of each block, by median polish: the series may lack different blocks."""
    by_block: dict[int, list[tuple[int, float]]] = {}
    for index, logs in enumerate(members):
        for block, value in logs.items():
            by_block.setdefault(block, []).append((index, value))
    levels = dict.fromkeys(by_block, 0.0)
    for _ in range(_ROUNDS):
        middles = [median([value - levels[block] for block, value in logs.items()]) for logs in members]
        levels = {
            block: median([value - middles[index] for index, value in own]) for block, own in by_block.items()
        }
    return levels


def _along(groups: Sequence[Sequence[Logs]], own: Logs) -> float:
    """Return the autocorrelation to assume, by differences of pairs of which no two have a series in common, and by
    that of the tested series."""
    from fslab.stats.autocorrelation import assumed, of_cells  # numpy

    differences = [
        {block: one[block] - other[block] for block in one.keys() & other.keys()}
        for members in groups
        for one, other in zip(members[::2], members[1::2], strict=False)
    ]
    return assumed(of_cells(differences, without_trend=True), of_cells([own], without_trend=True))


def _widening(blocks: int, along: float) -> float:
    """Return how much an autocorrelation of an AR(1) series widens the scatter of the slope of so many values."""
    steps = [2 * block - (blocks - 1) for block in range(blocks)]
    products = ((2 if lag else 1) * along**lag * sum(map(mul, steps, steps[lag:])) for lag in range(blocks))
    return sqrt(sum(products) / sum(map(mul, steps, steps)))


def _widened(p_value: float, factor: float) -> float:
    """Return the p-value of a normal statistic that is divided by ``factor``."""
    normal = NormalDist()
    return 2 * normal.cdf(normal.inv_cdf(p_value / 2) / factor)
