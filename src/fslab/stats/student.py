"""Student's t distribution: tail and quantile, to full accuracy also far out in the tail.

Pure functions; they must not know what the numbers mean.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, lgamma, log, sqrt

_TINY = 1e-300
_TERMS = 500


def two_sided_tail(value: float, freedom: int) -> float:
    """P(|T| ≥ ``value``) for t with ``freedom`` degrees of freedom.

    The regularised incomplete beta function I_x(f/2, ½) at x = f/(f + t²).
    Source: Abramowitz & Stegun, *Handbook of Mathematical Functions*, 1964, 26.7.1 and 26.5.27.
    """
    if freedom < 1:
        raise ValueError(f"t needs at least 1 degree of freedom, not {freedom}")
    if value == inf:
        return 0.0
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value))


@lru_cache(maxsize=4096)
def two_sided_quantile(probability: float, freedom: int) -> float:
    """The value that |T| reaches with ``probability``: 2.776 for 5 % and 4 degrees of freedom."""
    if not 0 < probability <= 1:
        raise ValueError(f"a probability lies above 0 and is at most 1, not {probability}")
    low, high = 0.0, 1.0
    while two_sided_tail(high, freedom) > probability:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if two_sided_tail(middle, freedom) > probability:
            low = middle
        else:
            high = middle
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b) by its continued fraction, on the side where that converges quickly."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's evaluation of the continued fraction; Abramowitz & Stegun 26.5.8."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1 / _not_zero(1 + step * d)
            c = _not_zero(1 + step / c)
            found *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return found


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """The mean and its standard error s/√n; the error of fewer than two values is infinite."""
    size = len(values)
    mean = sum(values) / size
    if size < 2:
        return mean, inf
    return mean, sqrt(sum((value - mean) ** 2 for value in values) / (size - 1) / size)


def beta_tail(a: float, b: float, x: float) -> float:
    """P(X ≤ ``x``) for a beta-distributed X with parameters ``a`` and ``b``."""
    return _incomplete_beta(a, b, x)
