"""How much figures vary from one campaign to the next, beyond the noise within each campaign.

Two components of variance, of logarithms. *Shifts* are those of a whole workload: all its cells change alike, so that
they cancel in a ratio of two of its cells. *Changes* are those of single cells, which do not cancel. Each is estimated
from all workloads together (Paule & Mandel, J. Res. NBS 87 (1982) 377, of mean squares), because two campaigns of one
workload show hardly anything.

An interval with both, of an estimate from several campaigns, is computed from those of its terms by adding squares of
half-widths (Zou & Donner, *Stat. Med.* 27 (2008) 1693: the ends of each side separately).

Pure functions; they must not know what the numbers mean.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import exp, inf, log, sqrt
from statistics import fmean, variance

from fslab.stats.interval import Interval
from fslab.stats.student import two_sided_quantile

# With fewer degrees of freedom, t is so large that almost any ratio is possible.
FREEDOM_LEAST = 8
_HALVINGS = 60
_TINY = 1e-18

Cell = Mapping[int, float]  # logarithms of one figure by block
CampaignCells = Sequence[Cell]  # the cells of one workload, in the same order in each campaign


@dataclass(frozen=True, kw_only=True, slots=True)
class Component:
    """A ``variance`` of logarithms between campaigns, with its degrees of ``freedom``."""

    variance: float
    freedom: float

    def half_width(self, coverage: float) -> float:
        """Return half the width of the interval of a value that varies so."""
        return two_sided_quantile(1 - coverage, self.freedom) * sqrt(self.variance)


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignSpread:
    """``changes``: of one cell, beside its workload. ``shifts``: of a workload."""

    changes: Component
    shifts: Component

    def half_width(self, weights: Iterable[Sequence[float]], coverage: float) -> float:
        """Return half the width, on logarithms, of what one campaign adds to Σ weight · ln(figure).

        ``weights``: those of the cells of each workload.
        """
        own = [list(each) for each in weights]
        changes = sum(weight * weight for weight in chain.from_iterable(own))
        shifts = sum(sum(each) ** 2 for each in own)
        return sqrt(
            changes * self.changes.half_width(coverage) ** 2 + shifts * self.shifts.half_width(coverage) ** 2
        )


NO_SPREAD = CampaignSpread(
    changes=Component(variance=0.0, freedom=inf), shifts=Component(variance=0.0, freedom=inf)
)


def fit(workloads: Iterable[Sequence[Sequence[CampaignCells]]]) -> CampaignSpread | None:
    """Return the variances between campaigns; None if the workloads show too little.

    ``workloads``: for each one its figures, and for each figure the campaigns, at least two. Cells without two values
    in each do not count. The figures of a workload count together as one.
    """
    changes: list[_Square] = []
    shifts: list[_Square] = []
    for figures in workloads:
        usable = [kept for campaigns in figures if len(campaigns) > 1 and (kept := _complete(campaigns))]
        for campaigns in usable:
            change, shift = _squares(campaigns, 1 / len(usable))
            changes += [change] if change.freedom else []
            shifts.append(shift)
    freedom = sum(each.freedom for each in changes), sum(each.freedom for each in shifts)
    if min(freedom) < FREEDOM_LEAST:
        return None
    of_cells = Component(variance=_excess(changes), freedom=freedom[0])
    beside = [replace(each, noise=each.noise + of_cells.variance / each.cells) for each in shifts]
    return CampaignSpread(changes=of_cells, shifts=Component(variance=_excess(beside), freedom=freedom[1]))


def _complete(campaigns: Sequence[CampaignCells]) -> list[CampaignCells]:
    """Return the campaigns with the cells that have two values in each of them."""
    cells = [cells for cells in zip(*campaigns, strict=True) if all(len(cell) > 1 for cell in cells)]
    return [*zip(*cells, strict=True)]


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignRatio:
    """The ``ratio`` in one campaign, with its ``interval``, from ``size`` blocks."""

    ratio: float
    interval: Interval
    size: int


def combined(campaigns: Sequence[CampaignRatio], half_width: float) -> tuple[float, Interval]:
    """Return the ratio and interval of several campaigns together.

    ``half_width``: of what each one adds, on logarithms. A campaign weighs by it and by its number of blocks, not by
    its own half-width: of equal ones, that whose few trials agree by chance would decide.
    """
    one = fmean(each.size * log(each.interval.high / each.interval.low) ** 2 / 4 for each in campaigns)
    weights = [1 / (one / each.size + half_width * half_width + _TINY) for each in campaigns]
    shares = [weight / sum(weights) for weight in weights]
    middle = sum(share * log(each.ratio) for share, each in zip(shares, campaigns, strict=True))
    between = sum(share * share for share in shares) * half_width * half_width

    def reach(distances: Iterable[float]) -> float:
        within = sum((share * far) ** 2 for share, far in zip(shares, distances, strict=True))
        return sqrt(within + between)

    low = middle - reach(log(each.ratio / each.interval.low) for each in campaigns)
    high = middle + reach(log(each.interval.high / each.ratio) for each in campaigns)
    coverage = min(each.interval.coverage for each in campaigns)
    return exp(middle), Interval(low=exp(low), high=exp(high), coverage=coverage)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Square:
    """A mean square, and the ``noise`` within campaigns that it contains."""

    mean: float
    freedom: float
    noise: float
    cells: int


def _squares(campaigns: Sequence[CampaignCells], share: float) -> tuple[_Square, _Square]:
    """Return the mean squares of changes of cells and of shifts of the workload. ``share``: of their freedom."""
    means = [[fmean(cell.values()) for cell in cells] for cells in campaigns]
    of_campaign = [fmean(each) for each in means]
    of_cell = [fmean(each) for each in zip(*means, strict=True)]
    count, cells = len(campaigns), len(of_cell)
    rest = sum(
        (mean - of_campaign[campaign] - of_cell[cell] + fmean(of_campaign)) ** 2
        for campaign, each in enumerate(means)
        for cell, mean in enumerate(each)
    )
    freedom = (count - 1) * (cells - 1)
    noise = [_noise(each) for each in campaigns]
    return (
        _Square(
            mean=rest / freedom if freedom else 0.0, freedom=freedom * share,
            noise=fmean(own for own, _ in noise), cells=cells,
        ),
        _Square(
            mean=variance(of_campaign), freedom=(count - 1) * share, noise=fmean(whole for _, whole in noise),
            cells=cells,
        ),
    )  # fmt: skip


def _noise(cells: CampaignCells) -> tuple[float, float]:
    """Return the variance of a cell's mean beside the others, and that of the mean of all, by a campaign's noise."""
    common = sorted(set.intersection(*(set(cell) for cell in cells)))
    if len(common) < 2:  # nothing is known of what cells have in common
        each = [variance(cell.values()) / len(cell) for cell in cells]
        return fmean(each), fmean(each) / len(cells)
    of_block = {block: fmean(cell[block] for cell in cells) for block in common}
    own = [variance(cell[block] - of_block[block] for block in common) / len(common) for cell in cells]
    scale = len(cells) / (len(cells) - 1) if len(cells) > 1 else 0.0
    return scale * fmean(own), variance(of_block.values()) / len(common)


def _excess(squares: Sequence[_Square]) -> float:
    """Return the variance with which the mean squares are, on average, as large as expected; 0 if they are smaller."""

    def ratio(between: float) -> float:
        return sum(each.freedom * each.mean / max(between + each.noise, 1e-18) for each in squares)

    wanted = sum(each.freedom for each in squares)
    low, high = 0.0, sum(each.freedom * each.mean for each in squares)
    if not 0 < high < inf or ratio(low) <= wanted:
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if ratio(middle) > wanted else (low, middle)
    return (low + high) / 2
