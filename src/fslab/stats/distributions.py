"""Tails and quantiles of Student's t, the beta distribution and Wilcoxon's signed-rank statistic; mean and error.

numpy and scipy are imported when a value is first computed,
because most commands do not need them. scipy has the signed-rank test, but neither critical values nor the interval.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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


@lru_cache(maxsize=256)
def lower_tails(size: int) -> NDArray[np.float64]:
    """Return P(T ≤ 0), P(T ≤ 1), … of the statistic of ``size`` differences that are symmetric about 0.

    These are sums of the coefficients of ∏ (1 + q^i)/2, i = 1 … size.
    Source: Wilcoxon, Biometrics Bulletin 1 (1945) 80.
    """
    import numpy as np

    chances = np.zeros(size * (size + 1) // 2 + 1)
    chances[0] = 1
    for rank in range(1, size + 1):
        chances[rank:] = (chances[rank:] + chances[:-rank]) / 2
        chances[:rank] /= 2
    tails: NDArray[np.float64] = np.cumsum(chances)
    tails.flags.writeable = False  # all callers share the cached array
    return tails


@lru_cache(maxsize=4096)
def signed_rank_cut(size: int, coverage: float) -> int:
    """Return the largest rank c with 1 − 2·P(T < c) ≥ coverage; 0 if there is none (95 % needs 6 differences)."""
    return int((1 - 2 * lower_tails(size) >= coverage).sum())
