"""Compares counts of events, some of which can be 0, by their difference, paired by block.

A ratio to 0 does not exist. Pure functions; they must not know what is counted, nor which direction is better.
"""

from collections.abc import Mapping
from math import log, sqrt

from fslab.stats import Reason
from fslab.stats.compare import ComparisonMethod, RatioEstimate, invalid_samples, no_ratio
from fslab.stats.interval import Interval
from fslab.stats.paired import PAIRS_LEAST
from fslab.stats.student import mean_and_error, two_sided_quantile, two_sided_tail


def compare_counts(
    a: Mapping[int, float], b: Mapping[int, float], *, coverage: float = 0.95
) -> RatioEstimate:
    """Return the difference a − b of counts by block, in ``more``, from the blocks that both have.

    Student's t interval of the differences. Their variance is taken as at least that of independent Poisson counts with
    these means, and as at least 1: a few counts that happen to be equal, such as 2 in three trials, do not show that
    the counts are free of chance. So the interval is wider than necessary if they really are. If all counts are 0, it
    is that of Poisson counts without an event: each mean is at most −ln((1 − coverage)/2)/n (the "rule of three";
    Hanley & Lippman-Hand, JAMA 249 (1983) 1743). ``needed`` is 3, as for ratios. Values that are negative or not finite
    have no difference.
    """
    problem = invalid_samples([*a.values()], [*b.values()])
    if problem not in {None, Reason.NOT_POSITIVE} or min([*a.values(), *b.values()], default=-1) < 0:
        return no_ratio(len(a), len(b), problem or Reason.NOT_POSITIVE, PAIRS_LEAST, coverage)
    blocks = sorted(a.keys() & b.keys())
    size = len(blocks)
    if size < PAIRS_LEAST:
        return no_ratio(len(a), len(b), Reason.TOO_FEW_SAMPLES, PAIRS_LEAST, coverage)
    difference, spread = mean_and_error([a[block] - b[block] for block in blocks])
    events = sum(a[block] + b[block] for block in blocks)
    error = max(spread, sqrt(max(events / size, 1.0) / size))
    half = error * two_sided_quantile(1 - coverage, size - 1) if events else -log((1 - coverage) / 2) / size
    return RatioEstimate(
        n_a=size, n_b=size, ratio=None, interval=None, p_value=two_sided_tail(difference / error, size - 1),
        reason=None, needed=PAIRS_LEAST, method=ComparisonMethod.COUNTS, coverage=coverage, more=difference,
        more_interval=Interval(low=difference - half, high=difference + half, coverage=coverage),
    )  # fmt: skip
