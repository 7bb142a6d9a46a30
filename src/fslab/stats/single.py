"""Estimates one figure that is 0 in some trials, which therefore has no logarithms. Pure."""

from collections.abc import Sequence
from math import ceil, log2

from fslab.stats import Reason
from fslab.stats.estimate_model import ComparisonMethod, RatioEstimate, no_ratio
from fslab.stats.interval import median, median_interval


def estimate_median(values: Sequence[float], *, coverage: float = 0.95) -> RatioEstimate:
    """Return the median in ``ratio``, with its distribution-free interval, which may begin or end at 0."""
    size, middle = len(values), median(values)
    # The range of n values covers the median with the probability 1 − 2 ^ (1 − n).
    needed = ceil(1 - log2(1 - coverage))
    interval = median_interval(values, coverage=coverage)
    if middle is None or interval is None:
        return no_ratio(size, size, Reason.TOO_FEW_SAMPLES, needed, coverage)
    return RatioEstimate(
        n_a=size, n_b=size, ratio=middle, interval=interval, p_value=None, reason=None, needed=needed,
        method=ComparisonMethod.MEDIAN, coverage=coverage,
    )  # fmt: skip
