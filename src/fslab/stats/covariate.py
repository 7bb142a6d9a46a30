"""A covariate that disturbs a figure: takes away the part of the figure's noise that it explains.

Each trial of a cell in a block has a figure y and a covariate x (both logarithms), and x is due to the machine, not to
the cell. Then y − slope · x has less noise than y and the same differences between cells: analysis of covariance
(Fisher 1932), in simulation known as control variates (Lavenberg & Welch, *Management Science* 27 (1981) 322). The
slope is estimated from what cells and blocks leave of x and y (two-way, by least squares): no difference between cells
enters it, and nothing that a whole block has in common, which comparisons by block do not contain either.

Pure functions. They must not know what the numbers mean. Imports numpy and scipy: import this module only where
something is compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr

# With fewer degrees of freedom, the slope's own error costs more than 10 % of the variance.
FREEDOM_LEAST = 12
T_LEAST = 3.0  # |slope| ÷ its standard error; a covariate that explains nothing would only add noise
P_LEAST = 0.05
X_LEAST = 1e-4  # standard deviation of x; less shows nothing
KIND_FREEDOM_LEAST = 6
KIND_P = 0.001  # a workload has many kinds; a kind that is left out by mistake only stays as measured

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Points = Mapping[int, tuple[float, float]]
Adjusted = list[dict[int, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Slope:
    value: float
    error: float
    freedom: int

    @property
    def stretch(self) -> float:
        """The factor of what cells and blocks leave of adjusted values: see ``adjusted``."""
        return 1 + 2 / self.freedom


@dataclass(frozen=True, kw_only=True, slots=True)
class _Residuals:
    """Sums of squares and products of x and y that cells and blocks leave, with their degrees of freedom.

    ``between``: sum of squares of x between cells, within blocks. Sums of several workloads can be added.
    """

    xx: float
    xy: float
    yy: float
    freedom: int
    between: float
    between_freedom: int

    def __add__(self, other: "_Residuals") -> "_Residuals":
        return _Residuals(
            xx=self.xx + other.xx, xy=self.xy + other.xy, yy=self.yy + other.yy,
            freedom=self.freedom + other.freedom, between=self.between + other.between,
            between_freedom=self.between_freedom + other.between_freedom,
        )  # fmt: skip

    def line(self, least: int) -> _Slope | None:
        """Return the slope; None with fewer than ``least`` degrees of freedom, or if x hardly varies."""
        freedom = self.freedom - 1
        if freedom < least or self.xx <= X_LEAST**2 * freedom:
            return None
        value = self.xy / self.xx
        error = sqrt(max(self.yy - value * self.xy, 0.0) / freedom / self.xx)
        return _Slope(value=value, error=error, freedom=freedom)

    def slope(self) -> _Slope | None:
        """Return the slope; None if it is not clear, or there are too few trials."""
        found = self.line(FREEDOM_LEAST)
        return found if found is not None and abs(found.value) >= T_LEAST * found.error else None

    def differs(self) -> bool:
        """Return whether x differs between cells by more than chance (F test)."""
        if not self.between_freedom or not self.freedom or self.xx <= 0:
            return False
        ratio = self.between / self.between_freedom / (self.xx / self.freedom)
        return bool(fdtrc(self.between_freedom, self.freedom, ratio) < P_LEAST)

    def gains(self, slope: _Slope) -> bool:
        """Return whether the y that this slope adjusts vary less than those measured."""
        after = self.yy + slope.value * (slope.value * self.xx - 2 * self.xy)
        return after * slope.stretch**2 < self.yy


class _TwoWayFit:
    """The fit of one workload: its ``places`` (cell, block), their pairs (x, y), and what cells and blocks leave."""

    def __init__(self, cells: Sequence[Points]) -> None:
        self.cells = len(cells)
        self.places = [(cell, block) for cell, points in enumerate(cells) for block in points]
        self.both = np.array([cells[cell][block] for cell, block in self.places]).reshape(-1, 2)
        self.usable = 2 * len(np.unique(self.both[:, 1])) >= len(self.both) > 0
        if not self.usable:
            return
        self.rest, self.sums = _residuals(self.both, np.array(self.places))
        self.usable = not self.sums.differs()

    def unlike(self, kinds: Sequence[str]) -> set[int]:
        """Return the cells of the kind whose slope differs most from that of the others, if by more than chance.

        Two kinds differ from each other alike: it is the one with fewer trials then, or the one with the flatter slope.
        """
        of_places, places = np.array([kinds[cell] for cell, _ in self.places]), np.array(self.places)
        found: list[tuple[float, int, float, str]] = []
        for kind in set(of_places.tolist()):
            own = of_places == kind
            if not own.all():
                slopes = [
                    _residuals(self.both[mask], places[mask])[1].line(KIND_FREEDOM_LEAST)
                    for mask in (own, ~own)
                ]
                flat = abs(slopes[0].value) if slopes[0] else 0.0
                found.append((_chance(slopes), int(own.sum()), flat, kind))
        chance, _, _, most = min(found, default=(1.0, 0, 0.0, ""))
        return {cell for cell, _ in self.places if kinds[cell] == most} if chance < KIND_P else set()

    def adjusted(self, slope: _Slope, reference: float) -> Adjusted:
        values = self.both[:, 1] - slope.value * (self.both[:, 0] - reference)
        values += (slope.stretch - 1) * (self.rest[:, 1] - slope.value * self.rest[:, 0])
        found: Adjusted = [{} for _ in range(self.cells)]
        for (cell, block), value in zip(self.places, values.tolist(), strict=True):
            found[cell][block] = value
        return found


def adjusted(
    workloads: Sequence[Sequence[Points]], reference: float, kinds: Sequence[Sequence[str]] | None = None
) -> list[Adjusted | None]:
    """Return the y of all trials as if x had been ``reference``.

    ``workloads``: for each workload its cells, and of each cell the pairs (x, y) by block. Cells of one workload are
    compared; a block is of one workload. A workload whose own slope is not clear, or that has too few trials for one,
    gets the slope of all workloads together if it varies less with it.

    ``kinds``: the kind of each cell. A kind may follow x unlike the others: one disk limits a figure, and on five the
    processor does. If its own slope clearly differs, its cells have no adjusted values (an empty mapping), and the
    slope is that of the others. The kind that differs most is taken out first, then the slope is estimated again.

    The noise of the adjusted values includes the slope's own error: what cells and blocks leave of them is stretched by
    1 + 2/f. Half of it is what f degrees of freedom cost on average (the slope uses up one of f + 1, and its error adds
    1/f to the variance of a difference between cells); the other half is for covariates with heavy tails, and for
    slopes that are used because they came out large (``benches/speed_rule.py``).

    None for a workload without a usable slope, for one whose y has few different values (a figure coarser than its
    noise), and for one whose x differs between cells by more than chance: then the cells themselves may cause it, and a
    correction could remove a difference that is real.
    """
    left = [list(cells) for cells in workloads]
    found = _fits(left)
    while kinds is not None:
        unlike = [fit.unlike(own) if slope else set() for (fit, slope), own in zip(found, kinds, strict=True)]
        if not any(unlike):
            break
        left = [
            [{} if cell in gone else points for cell, points in enumerate(cells)]
            for cells, gone in zip(left, unlike, strict=True)
        ]
        found = _fits(left)
    return [None if slope is None else fit.adjusted(slope, reference) for fit, slope in found]


def _fits(workloads: Sequence[Sequence[Points]]) -> list[tuple[_TwoWayFit, _Slope | None]]:
    """Return the fit of each workload, and the slope by which it is adjusted."""
    found = [_TwoWayFit(cells) for cells in workloads]
    usable = [each for each in found if each.usable]
    if not usable:
        return [(each, None) for each in found]
    together = sum((each.sums for each in usable[1:]), usable[0].sums)
    common = None if together.differs() else together.slope()
    answer: list[tuple[_TwoWayFit, _Slope | None]] = []
    for each in found:
        slope = each.sums.slope() if each.usable else None
        if slope is None and each.usable and common is not None and each.sums.gains(common):
            slope = common
        answer.append((each, slope))
    return answer


def _chance(slopes: Sequence[_Slope | None]) -> float:
    """Return the probability that two slopes differ so much by chance; 1 if one is unknown."""
    known = [slope for slope in slopes if slope is not None]
    if len(known) < 2:
        return 1.0
    one, other = known
    distance, error = abs(one.value - other.value), hypot(one.error, other.error)
    freedom = min(one.freedom, other.freedom)
    return float(2 * stdtr(freedom, -distance / error)) if error else float(distance == 0)


def _residuals(both: Floats, places: Labels) -> tuple[Floats, _Residuals]:
    """Return what cells and blocks leave of the pairs (x, y), and its sums; ``places``: (cell, block) of each pair."""
    of_cells, of_blocks = (np.unique(labels, return_inverse=True)[1] for labels in places.T)
    rest, rank = _rest(both, of_cells, of_blocks)
    (xx, xy), (_, yy) = (rest.T @ rest).tolist()
    counts = np.bincount(of_blocks)
    means = np.bincount(of_blocks, both[:, 0]) / counts
    between = float(((both[:, 0] - means[of_blocks]) ** 2).sum()) - xx
    return rest, _Residuals(
        xx=xx, xy=xy, yy=yy, freedom=len(both) - rank, between=between, between_freedom=rank - len(counts)
    )


def _rest(values: Floats, of_cells: Labels, of_blocks: Labels) -> tuple[Floats, int]:
    """Return what the effects of cells and blocks leave of each column of the values, and the rank of these effects.

    Least squares on two factors: the larger one is eliminated, so that the system is as small as the smaller one.
    """
    large, small = (of_cells, of_blocks) if of_cells.max() >= of_blocks.max() else (of_blocks, of_cells)
    counts = np.zeros((large.max() + 1, small.max() + 1))
    np.add.at(counts, (large, small), 1.0)
    in_large, in_small = counts.sum(axis=1)[:, None], counts.sum(axis=0)
    sums_large, sums_small = np.zeros((len(counts), 2)), np.zeros((counts.shape[1], 2))
    np.add.at(sums_large, large, values)
    np.add.at(sums_small, small, values)
    system = np.diag(in_small) - counts.T @ (counts / in_large)
    effects, _, rank, _ = np.linalg.lstsq(system, sums_small - counts.T @ (sums_large / in_large), rcond=1e-9)
    others = (sums_large - counts @ effects) / in_large
    return values - effects[small] - others[large], len(counts) + int(rank)
