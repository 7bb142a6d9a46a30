"""Estimates how much trials resemble the ones before, and how much wider intervals must be for that.

Rows are samples, columns are blocks in order. Imports numpy: import this module only where something is compared.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fslab.stats.estimate_model import INDEPENDENCE_LEAST, CommonCorrelation

Floats = NDArray[np.float64]

# Of a long series. Simulated: with fewer, a fixed factor for unknown autocorrelation shows more than such an estimate.
VALUES_LEAST = 10
CORRELATED_LEAST = 10  # values; the estimate of a shorter series is mostly its own bias
_EQUAL = 1e-20
_SMALLEST = 0.1
_LARGEST = 0.85
UNKNOWN = 0.5  # where the values do not show it


def widening(samples: Floats, common: CommonCorrelation | None = None) -> Floats:
    """Return the factor, at least 1, by which intervals must be wider because neighbours are correlated.

    √((1 + ρ)/(1 − ρ)) is right for a mean of n values of an AR(1) series with autocorrelation ρ (effective sample size;
    Zwiers & von Storch, J. Climate 8 (1995) 336). ρ is the upper end of its one-sided 87.5 % interval. With the
    estimate itself instead of the upper end, false differences would have a rate of 9 % instead of 5 % at ρ = 0.5 and
    20 blocks. An estimate of 0.1 or less counts as 0. Below 20 blocks, only an estimate above two of its standard
    errors counts.

    A series of 20 blocks is too short for small levels: one in sixteen with ρ = 0.5 does not show it, so that 6–13 % of
    the rows of 3–6 cells had a false difference after Holm's correction. Therefore the ``common`` autocorrelation of
    all cells counts if there is one, and that of the sample only if it is larger by more than its standard error.
    Simulated in docs/simulations.md.
    """
    count = samples.shape[1]
    factor, least = np.ones(len(samples)), -np.inf
    if common is not None:
        known = count >= INDEPENDENCE_LEAST or common.is_known
        limit = _SMALLEST if known else _clear(common.values)
        factor, least = (
            _factor(np.full(len(samples), common.lag1), common.values, limit),
            common.lag1 + count**-0.5,
        )
    if count <= 4:
        return factor
    rho = autocorrelation(samples)
    limit = _SMALLEST if count >= INDEPENDENCE_LEAST else _clear(count)
    return np.where(rho > least, np.maximum(factor, _factor(rho, count, limit)), factor)


def _clear(values: float) -> float:
    """Return two standard errors of an estimate from so many values, corrected for its bias."""
    return float(2 * np.sqrt(values) / (values - 4)) if values > 4 else np.inf


def _factor(rho: Floats, values: float, limit: float) -> Floats:
    upper = _upper(rho, values, limit)
    return np.sqrt((1 + upper) / (1 - upper))


def _upper(rho: Floats, values: float, limit: float) -> Floats:
    """Return the upper limit; 0 for an estimate that does not exceed ``limit``."""
    upper = np.clip(rho + 1.15 * np.sqrt((1 - np.minimum(rho * rho, 1)) / values), 0, _LARGEST)
    return np.where(rho > limit, upper, 0.0)


def autocorrelation(samples: Floats) -> Floats:
    """Return the correlation of each difference with the one before, corrected for the bias of a short series.

    The bias is (1 + 4ρ)/n (Marriott & Pope; Kendall, Biometrika 41 (1954) 390, 403). If all differences are equal, the
    uncorrected correlation counts as 0.
    """
    count = samples.shape[1]
    centred = samples - samples.mean(axis=1, keepdims=True)
    spread = (centred * centred).sum(axis=1)
    along = (centred[:, 1:] * centred[:, :-1]).sum(axis=1)
    lag1 = np.divide(along, spread, out=np.zeros_like(spread), where=spread > 0)
    corrected: Floats = np.minimum((count * lag1 + 1) / (count - 4), 1.0)
    return corrected


def common(series: Iterable[Floats], values: float) -> CommonCorrelation | None:
    """Return the mean autocorrelation of all series with enough values; None without any.

    ``values``: the number of independent ones in these series.
    """
    long = (each for each in series if len(each) >= CORRELATED_LEAST and each.var() > _EQUAL)
    found = [float(autocorrelation(each[None, :])[0]) for each in long]
    return CommonCorrelation(lag1=float(np.mean(found)), values=int(values)) if found else None


def of_cells(
    cells: Sequence[Mapping[int, float]], *, without_trend: bool = False
) -> CommonCorrelation | None:
    """Return the autocorrelation of the values themselves, from those of all cells of a campaign by block.

    With von Neumann's ratio R = Σ(xᵢ − xᵢ₊₁)²/Σ(xᵢ − x̄)², 1 − R/2 of a cell's n values has the mean (1 − 2/n)²·ρ,
    nearly (simulated for ρ from 0 to 0.5, also for few values), and the variance 1/(n − 2). So a cell tells as much as
    (n − 2)³/n² values of a long series. What slows a whole block makes cells alike. Products of neighbours are
    correlated by r² if values are by r, so that K cells show no more than K/(1 + (K − 1)·r²) independent ones do.
    ``without_trend``: of what remains of each cell beside a straight line, which takes 1/(n − 2) from 1 − R/2.
    Source: von Neumann, Ann. Math. Statist. 12 (1941) 367.
    """
    series = [{block: cell[block] for block in sorted(cell)} for cell in cells if len(cell) > 2]
    if without_trend:
        series = [dict(zip(cell, _beside_line([*cell.values()]), strict=True)) for cell in series]
    series = [cell for cell in series if np.var([*cell.values()]) > _EQUAL]
    if not series:
        return None
    blocks: dict[int, list[float]] = defaultdict(list)
    along = weight = 0.0
    for cell in series:
        own, size = np.array([*cell.values()]), len(cell)
        for block, value in zip(cell, (own - own.mean()) / own.std(), strict=True):
            blocks[block].append(float(value))
        along += (size - 2) * (1 - (np.diff(own) ** 2).sum() / own.var() / size / 2) + without_trend
        weight += (size - 2) ** 3 / size**2
    count, alike = len(series), 0.0
    if count > 1:
        together = float(np.mean([np.mean(each) ** 2 for each in blocks.values()]))
        alike = min(1.0, max(0.0, (count * together - 1) / (count - 1)))
    values = weight / (1 + (count - 1) * alike**2)
    return CommonCorrelation(lag1=min(1.0, along / weight), values=values, least=VALUES_LEAST)


def assumed(common: CommonCorrelation | None, own: CommonCorrelation | None) -> float:
    """Return the autocorrelation that :func:`widening` would use: the upper limit of that of all cells, or of a single
    one if it is larger by more than its standard error; 0.5 where the cells do not show it."""
    if common is None or not common.is_known:
        return UNKNOWN
    alone = [own] if own is not None and own.lag1 > common.lag1 + own.values**-0.5 else []
    return max(float(_upper(np.array([each.lag1]), each.values, _SMALLEST)[0]) for each in (common, *alone))


def _beside_line(values: Sequence[float]) -> list[float]:
    """Return what remains of values beside the straight line of least squares."""
    steps = np.arange(len(values)) - (len(values) - 1) / 2
    centred = np.array(values) - np.mean(values)
    remaining: list[float] = (centred - steps * (steps @ centred) / (steps @ steps)).tolist()
    return remaining
