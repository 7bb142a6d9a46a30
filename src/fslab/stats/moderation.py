"""Moderated variances: a comparison of few blocks also uses the noise of the other cells of its group.

With three blocks a variance has two degrees of freedom, and an interval at 99.8 % is 22 standard errors wide on each
side. But a campaign measures the same figure on many cells, and their variances resemble each other. How much they do
is estimated from them, and their common variance counts as so many more degrees of freedom.

Source: Smyth, *Stat. Appl. Genet. Mol. Biol.* 3 (2004) article 3 (moderated t); Phipson et al., *Ann. Appl. Stat.* 10
(2016) 946 (cells whose noise is of another size keep their own variance).

Pure functions. They must not know what the numbers mean. Imports numpy and scipy: import this module only where
something is compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, fdtri, polygamma

Floats = NDArray[np.float64]

CELLS_LEAST = 4  # fewer have no two pairs without a cell in common
CELLS_OWN = 8  # a smaller group takes the spread of variances from all groups together
BLOCKS_LEAST = 3
# A variance that only one in ten of the group would exceed belongs to another kind of cell.
_UNLIKE = 0.1
_ROUNDS = 15


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisePrior:
    """The ``variance`` that other cells suggest for a difference of logarithms of one block.

    It counts as ``freedom`` degrees of freedom (may be infinite). With a comparison's own degrees of freedom, the sum
    is at most ``most``: those of all cells of the group together.
    """

    variance: float
    freedom: float
    most: float

    def times(self, factor: float) -> "NoisePrior":
        """Return the prior of a difference whose variance is ``factor`` times as large."""
        return NoisePrior(variance=self.variance * factor, freedom=self.freedom, most=self.most)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Group:
    """``logarithm``: mean of the logarithms of its variances, without their bias. ``excess``: variance of these
    logarithms beyond what estimation explains. ``freedom``: degrees of freedom of all cells together."""

    cells: int
    logarithm: float
    excess: float
    freedom: int


def moderated(variances: Floats, freedom: int, prior: NoisePrior | None) -> tuple[Floats, Floats]:
    """Return variances and degrees of freedom, one of each per sample.

    A variance far above the prior keeps its own degrees of freedom. A small one is never kept: a few trials that agree
    by chance do not show that a cell is quiet.
    """
    own = np.full(len(variances), float(freedom))
    if prior is None:
        return variances, own
    worth = min(prior.freedom, prior.most)
    limit = prior.variance * float(fdtri(freedom, worth, 1 - _UNLIKE))
    joined = (worth * prior.variance + freedom * variances) / (worth + freedom)
    total = max(float(freedom), min(worth + freedom, prior.most))
    alike = variances <= limit
    return np.where(alike, joined, variances), np.where(alike, total, own)


def fit(groups: Mapping[str, Sequence[Mapping[int, float]]]) -> dict[str, NoisePrior]:
    """Return the prior of each group that is large enough: of one value of a cell, not of a difference.

    ``groups``: by name, the logarithms of one figure by block, one mapping per cell. Cells are compared in pairs, so
    that what changes from block to block cancels.
    """
    known = {name: group for name, cells in groups.items() if (group := _group(cells)) is not None}
    if not known:
        return {}
    weights = [group.cells for group in known.values()]
    common = float(np.average([group.excess for group in known.values()], weights=weights))
    return {
        name: _prior(group, group.excess if group.cells >= CELLS_OWN else common)
        for name, group in known.items()
    }


def _prior(group: _Group, excess: float) -> NoisePrior:
    freedom = 2 * _trigamma_inverse(excess) if excess > 0 else inf
    bias = float(digamma(freedom / 2)) - log(freedom / 2) if freedom < inf else 0.0
    return NoisePrior(
        variance=float(np.exp(group.logarithm + bias)), freedom=freedom, most=float(group.freedom)
    )


def _group(cells: Sequence[Mapping[int, float]]) -> _Group | None:
    usable = [cell for cell in cells if len(cell) >= BLOCKS_LEAST]
    if len(usable) < CELLS_LEAST:
        return None
    logarithms: list[float] = []
    excesses: list[float] = []
    for pairs in _rounds(len(usable)):
        found = [one for a, b in pairs if (one := _half_variance(usable[a], usable[b])) is not None]
        if len(found) < 2:
            continue
        freedom = np.array([own for _, own in found], dtype=np.float64)
        values = np.log([variance for variance, _ in found]) - digamma(freedom / 2) + np.log(freedom / 2)
        logarithms.extend(values)
        excesses.append(float(values.var(ddof=1) - polygamma(1, freedom / 2).mean()))
    if not excesses:
        return None
    freedoms = sorted(len(cell) - 1 for cell in usable)
    return _Group(
        cells=len(usable), logarithm=float(np.mean(logarithms)), excess=float(np.mean(excesses)),
        freedom=sum(freedoms[:-1]),  # the blocks take those of one cell
    )  # fmt: skip


def _half_variance(a: Mapping[int, float], b: Mapping[int, float]) -> tuple[float, int] | None:
    """Half the variance of the differences, and its degrees of freedom; None if it is 0 or from too few blocks."""
    common = a.keys() & b.keys()
    if len(common) < BLOCKS_LEAST:
        return None
    differences = np.array([a[block] - b[block] for block in sorted(common)])
    variance = float(differences.var(ddof=1)) / 2
    return (variance, len(common) - 1) if variance > 1e-20 else None


def _rounds(count: int) -> list[list[tuple[int, int]]]:
    """Return rounds of pairs without a member in common, as in a round-robin tournament; every pair at most once."""
    members = [*range(count), *([-1] if count % 2 else [])]
    half, rest = len(members) // 2, members[1:]
    found = []
    for turn in range(min(len(rest), _ROUNDS)):
        order = [members[0], *rest[turn:], *rest[:turn]]
        pairs = zip(order[:half], reversed(order[half:]), strict=True)
        found.append([pair for pair in pairs if -1 not in pair])
    return found


def _trigamma_inverse(value: float) -> float:
    """The x at which the trigamma function has this value, by Newton's method (Smyth 2004, appendix)."""
    found = 0.5 + 1 / value
    for _ in range(50):
        there = float(polygamma(1, found))
        step = there * (1 - there / value) / float(polygamma(2, found))
        found += step
        if -step / found < 1e-8:
            break
    return found
