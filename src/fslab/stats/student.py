"""Tails and quantiles of Student's t and of the beta distribution, from scipy; mean and standard error.

Pure functions; they must not know what the numbers mean. scipy is imported when a value is first computed, because most
commands do not need it.
"""

from functools import lru_cache
from math import inf, sqrt


@lru_cache(maxsize=4096)
def two_sided_quantile(probability: float, freedom: float) -> float:
    """Return the value that |T| reaches with ``probability``: 2.776 for 5 % and 4 degrees of freedom."""
    from scipy.special import stdtrit

    if not 0 < probability <= 1:
        raise ValueError(f"a probability lies above 0 and is at most 1, not {probability}")
    return -float(stdtrit(freedom, probability / 2))


def two_sided_tail(value: float, freedom: float) -> float:
    """Return P(|T| ≥ ``value``): 5 % for 2.776 and 4 degrees of freedom."""
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(value)))


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Return the mean and its standard error s/√n; the error of a single value is infinite."""
    size = len(values)
    mean = sum(values) / size
    if size < 2:
        return mean, inf
    return mean, sqrt(sum((value - mean) ** 2 for value in values) / (size - 1) / size)


def beta_tail(a: float, b: float, x: float) -> float:
    """Return P(X ≤ ``x``) for a beta-distributed X with parameters ``a`` and ``b``."""
    from scipy.special import betainc

    return float(betainc(a, b, x))
