"""What a comparison without a difference does say: how large a difference it would have shown, or rules out.

Pure functions; they must not know what the numbers mean.
"""

from __future__ import annotations

from math import expm1

from fslab.stats.compare import Method, RatioEstimate
from fslab.stats.student import two_sided_quantile


def detectable(estimate: RatioEstimate, *, power: float = 0.8) -> float | None:
    """The smallest true difference that would have been seen with probability ``power``: 0.07 is 7 %.

    A difference as large as the interval's half-width h is seen every second time only, so h alone promises
    too much; for ``power`` it takes h·(1 + t_power/t_coverage), with one-sided and two-sided quantiles of t. It is
    worked out from the spread alone: power at the difference that was observed says nothing beyond the
    p-value (Hoenig & Heisey, Am. Statistician 55 (2001) 19). None without an interval.
    Source: Cohen, *Statistical Power Analysis*, 2nd ed. 1988, section 2.3; Bloom, Eval. Rev. 19 (1995) 547.
    """
    half = estimate.half_width
    if half is None or estimate.interval is None:
        return None
    if not 0.5 <= power < 1:
        raise ValueError(f"a power worth speaking of lies between 0.5 and 1, not {power}")
    paired = estimate.method is not Method.RANK_SUM
    freedom = estimate.n_a - 1 if paired else estimate.n_a + estimate.n_b - 2
    error = max(1 - estimate.interval.coverage, 1e-12)
    further = two_sided_quantile(2 * (1 - power), freedom) / two_sided_quantile(error, freedom)
    return expm1(half * (1 + further))


def excluded(estimate: RatioEstimate) -> float | None:
    """What the interval rules out: differences beyond its end that lies farther from 1; 0.06 is 6 %."""
    if estimate.interval is None:
        return None
    return max(estimate.interval.high, 1 / estimate.interval.low) - 1
