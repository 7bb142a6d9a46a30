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
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

# With fewer degrees of freedom, the slope's own error costs more than 10 % of the variance.
FREEDOM_LEAST = 12
T_LEAST = 3.0  # |slope| ÷ its standard error; a covariate that explains nothing would only add noise
P_LEAST = 0.05
X_LEAST = 1e-4  # standard deviation of x; less shows nothing

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Points = Mapping[int, tuple[float, float]]


def adjusted(cells: Sequence[Points], reference: float) -> list[dict[int, float]] | None:
    """Return the y of all trials as if x had been ``reference``; ``cells`` has the pairs (x, y) of each cell by block.

    The noise of the adjusted values includes the slope's own error: what cells and blocks leave of them is stretched by
    1 + 2/f. Half of it is what f degrees of freedom cost on average (the slope uses up one of f + 1, and its error adds
    1/f to the variance of a difference between cells); the other half is for covariates with heavy tails, and for
    slopes that are used because they came out large (``benches/speed_rule.py``).

    None if the slope is not clear, if there are too few trials, if y has few different values (a figure coarser than
    its noise), or if x differs between cells by more than chance: then the cells themselves may cause it, and a
    correction could remove a difference that is real.
    """
    places = [(cell, block) for cell, points in enumerate(cells) for block in points]
    if not places:
        return None
    both = np.array([cells[cell][block] for cell, block in places])
    of_cells, of_blocks = (np.unique(labels, return_inverse=True)[1] for labels in np.array(places).T)
    if 2 * len(np.unique(both[:, 1])) < len(both):
        return None
    rest, rank = _rest(both, of_cells, of_blocks)
    found = _slope(both, rest, rank, of_blocks)
    if found is None:
        return None
    slope, freedom = found
    values = both[:, 1] - slope * (both[:, 0] - reference)
    values += 2 / freedom * (rest[:, 1] - slope * rest[:, 0])
    answer: list[dict[int, float]] = [{} for _ in cells]
    for (cell, block), value in zip(places, values, strict=True):
        answer[cell][block] = float(value)
    return answer


def _slope(both: Floats, rest: Floats, rank: int, of_blocks: Labels) -> tuple[float, int] | None:
    """Return the slope and its degrees of freedom; None if it must not be used."""
    freedom = len(both) - rank - 1
    if freedom < FREEDOM_LEAST:
        return None
    (xx, xy), (_, yy) = rest.T @ rest
    if xx <= X_LEAST**2 * freedom or _differs(both[:, 0], of_blocks, xx, rank):
        return None
    slope = xy / xx
    error = sqrt(max(yy - slope * xy, 0.0) / freedom / xx)
    return (float(slope), freedom) if abs(slope) >= T_LEAST * error else None


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


def _differs(x: Floats, of_blocks: Labels, within: float, rank: int) -> bool:
    """Return whether x differs between cells within blocks (F test). ``within``: what cells and blocks leave of it."""
    means = np.bincount(of_blocks, x) / np.bincount(of_blocks)
    between = float(((x - means[of_blocks]) ** 2).sum()) - within
    freedom, rest = rank - len(means), len(x) - rank
    return freedom > 0 and bool(fdtrc(freedom, rest, between / freedom / (within / rest)) < P_LEAST)
