"""Counts of events of which some are 0, paired by block: how many more one has than the other.

A ratio to none does not exist. Pure functions; they must not know what is counted, nor which way is better.
"""

from collections.abc import Mapping
from math import sqrt

from fslab.stats import Reason
from fslab.stats.compare import ComparisonMethod, RatioEstimate, invalid_samples, no_ratio
from fslab.stats.interval import Interval
from fslab.stats.paired import PAIRS_LEAST
from fslab.stats.student import mean_and_error, two_sided_quantile, two_sided_tail


def compare_counts(
    a: Mapping[int, float], b: Mapping[int, float], *, coverage: float = 0.95
) -> RatioEstimate:
    """The difference a − b of counts by block, in ``more``, from the blocks that both have.

    Student's t interval on the differences. Their variance is taken as no smaller than that of independent Poisson
    counts with these means, and as no smaller than 1: a few counts that happen to be alike, such as 0 in three trials,
    do not say that there is no chance in them. So it is wider than need be where nothing is left to chance.
    ``needed`` is 3, as for ratios. Of values that are not finite, or negative, there is no difference.
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
    half = error * two_sided_quantile(1 - coverage, size - 1)
    return RatioEstimate(
        n_a=size, n_b=size, ratio=None, interval=None, p_value=two_sided_tail(difference / error, size - 1),
        reason=None, needed=PAIRS_LEAST, method=ComparisonMethod.COUNTS, coverage=coverage, more=difference,
        more_interval=Interval(low=difference - half, high=difference + half, coverage=coverage),
    )  # fmt: skip
