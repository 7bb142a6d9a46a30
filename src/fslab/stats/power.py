"""What a comparison without a difference does say: how large a difference it would have shown, or rules out.

Pure functions; they must not know what the numbers mean.
"""

from functools import lru_cache
from math import expm1

from fslab.stats.compare import INDEPENDENCE_LEAST, ComparisonMethod, RatioEstimate
from fslab.stats.student import two_sided_quantile

_NODES = 64


def detectable(estimate: RatioEstimate, *, power: float = 0.8) -> float | None:
    """The smallest true difference that another such campaign would show with probability ``power``: 0.07 is 7 %.

    A difference as large as the interval's half-width is seen every second time only. How much more it takes
    (:func:`noncentrality`) counts that the spread itself is only estimated, both here and in that other campaign. It is
    worked out from the spread alone: power at the difference that was observed says nothing beyond the
    p-value (Hoenig & Heisey, Am. Statistician 55 (2001) 19). None without an interval.
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
    """How much wider the other campaign's interval is than t's, by chance; simulated for 10 to 80 normal differences.

    It may look asymmetric, or, where there are blocks enough to judge that, autocorrelated.
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
    """By how many *estimated* standard errors two means must differ for a t test to see it with ``power``.

    With the true standard error it would be the noncentrality that Student's t needs; it is averaged over what may
    have been estimated instead, √(χ²/freedom) times the true one. For normal values; error is two-sided.
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
    """What the interval rules out: differences beyond its end that lies farther from 1; 0.06 is 6 %."""
    if estimate.interval is None:
        return None
    return max(estimate.interval.high, 1 / estimate.interval.low) - 1
