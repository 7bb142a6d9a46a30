"""The exact distribution of Wilcoxon's signed-rank statistic, and the ranks at the ends of an interval.

Pure functions; they must not know what the numbers mean. scipy has the test, but neither critical values nor the
interval.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    lower_half = lower_tails(size)[: (size * (size + 1) // 2 + 1) // 2]
    return int((1 - 2 * lower_half >= coverage).sum())
