"""Computes which differences a comparison could have shown, and which differences it excludes.

Pure functions; they must not know what the numbers mean.
"""

from functools import lru_cache
from math import expm1

from fslab.stats.compare import INDEPENDENCE_LEAST, ComparisonMethod, RatioEstimate
from fslab.stats.student import two_sided_quantile

_NODES = 64


def detectable(estimate: RatioEstimate, *, power: float = 0.8) -> float | None:
    """Return the smallest true difference that another such campaign would show with probability ``power``.

    0.07 means 7 %. None without an interval. Raises ValueError for a power below 0.5.

    A difference as large as the interval's half-width is shown only every second time. How much larger it must be
    (:func:`noncentrality`) includes that the spread is only estimated, both here and in that other campaign. Only the
    spread is used: power at the observed difference adds nothing to the p-value (Hoenig & Heisey, Am. Statistician 55
    (2001) 19).
    Source: Cohen, *Statistical Power Analysis*, 2nd ed. 1988, section 2.3; averaged over the spread as by O'Hagan,
    Stevens & Campbell, Pharm. Statist. 4 (2005) 187 (assurance).
    """
    half = estimate.half_width
    if half is None or estimate.interval is None:
        return None
    if not 0.5 <= power < 1:
        raise ValueError(f"power must be between 0.5 and 1, not {power}")
    paired = estimate.method is not ComparisonMethod.RANK_SUM
    freedom = estimate.n_a - 1 + estimate.borrowed if paired else estimate.n_a + estimate.n_b - 2
    error = max(1 - estimate.interval.coverage, 1e-12)
    wider = max(1.0, _by_chance(estimate) / estimate.widening)
    return expm1(half * wider * noncentrality(freedom, error, power) / two_sided_quantile(error, freedom))


def _by_chance(estimate: RatioEstimate) -> float:
    """Return how much wider than t's the other campaign's interval is by chance.

    Its differences may look asymmetric or, with enough blocks to estimate that, autocorrelated. Simulated for 10 to 80
    normal differences.
    """
    if estimate.method in {
        ComparisonMethod.RANK_SUM,
        ComparisonMethod.PAIRED_T,
        ComparisonMethod.MODERATED_T,
    }:
        return 1.0
    return 1 + (3 if estimate.n_a >= INDEPENDENCE_LEAST else 0.5) / estimate.n_a


@lru_cache(maxsize=1024)
def noncentrality(freedom: float, error: float, power: float) -> float:
    """Return by how many *estimated* standard errors two means must differ for a t test to show it with ``power``.

    With the true standard error, it would be the noncentrality that Student's t needs. It is averaged over the possible
    estimates, √(χ²/freedom) times the true one. For normal values; ``error`` is two-sided.
    """
    import numpy as np
    from scipy.special import chdtri, nctdtr

    points, weights = np.polynomial.legendre.leggauss(_NODES)
    spreads = np.sqrt(chdtri(freedom, (1 - points) / 2) / freedom)
    limit = two_sided_quantile(error, freedom)

    def seen(errors: float) -> float:
        return float((weights * (1 - nctdtr(freedom, errors * spreads, limit))).sum() / 2)

    low, high = 0.0, 2 * limit
    while seen(high) < power:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if seen(middle) < power else (low, middle)
    return high


def excluded(estimate: RatioEstimate) -> float | None:
    """Return the largest difference that the interval does not exclude: 0.06 means 6 %; None without an interval."""
    if estimate.interval is None:
        return None
    return max(estimate.interval.high, 1 / estimate.interval.low) - 1
