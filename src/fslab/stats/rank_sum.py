"""Estimates the ratio of two independent samples: Hodges–Lehmann, with the exact interval of the rank-sum test.

Pure functions; they must not know what the numbers mean, nor which direction is better. scipy has the Mann–Whitney
test, but not its critical values and not the interval.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import comb, exp, hypot, isfinite, log, sqrt
from statistics import fmean

from fslab.stats import Reason
from fslab.stats.interval import Interval, of_logarithms
from fslab.stats.noise_prior import Correlations
from fslab.stats.ratio_estimate import (
    CORRELATED,
    PAIRS_LEAST,
    ComparisonMethod,
    RatioEstimate,
    invalid_samples,
    is_correlation_known,
    mostly_equal,
    no_ratio,
)
from fslab.stats.student import mean_and_error, two_sided_quantile, two_sided_tail


def compare_ratio(
    a: Sequence[float], b: Sequence[float], *, coverage: float = 0.95, common: Correlations = (None, None),
    among: int = 1,
) -> RatioEstimate:  # fmt: skip
    """Return the ratio a/b: Hodges–Lehmann estimate on logarithms, exact Mann–Whitney interval.

    The estimate is the (geometric) median of all quotients aᵢ/bⱼ. The interval runs from the c-th smallest to the c-th
    largest of them. c is the largest rank with 1 − 2·P(U < c) ≥ coverage, where U is the Mann–Whitney statistic of two
    samples from one distribution. The two distributions of log values are assumed to differ by a shift only. With ties,
    the coverage is at least the stated one. Samples of unequal size may differ in their noise, too: then a rank test
    shows differences too often if the smaller one is noisier, so that the interval also contains Welch's (of the means
    of logarithms), and the p-value is the larger one. Sizes 4 and 4 are the smallest equal ones for 95 %; 5 and 5 give
    c = 3, 96.8 %. Where ranks cannot reach the level of the first of ``among`` comparisons that are corrected together,
    however far apart the samples are, everything is Welch's, from 3 values of each on, unless most of them are equal.
    Values are in the order of their trials: where they resemble the ones before, as they themselves show or those of
    other cells (``common``, of both sides), intervals are wider (:mod:`fslab.stats.autocorrelation`).
    Source: Hodges & Lehmann, Ann. Math. Statist. 34 (1963) 598; Hollander & Wolfe, *Nonparametric Statistical Methods*,
    2nd ed. 1999, sections 4.1–4.3; Welch, Biometrika 34 (1947) 28.
    """
    reason = invalid_samples(a, b)
    if reason is not None:
        return no_ratio(len(a), len(b), reason, PAIRS_LEAST, coverage)
    logs = [log(value) for value in a], [log(value) for value in b]
    coarse = any(map(mostly_equal, logs))
    needed = pairs_needed(coverage) if coarse else PAIRS_LEAST
    ranks = (
        coarse or min(len(a), len(b)) < PAIRS_LEAST or _cut(len(a), len(b), 1 - (1 - coverage) / among) > 0
    )
    quotients = sorted(x / y for x in a for y in b)
    ratio, cut = _geometric_median(quotients), _cut(len(a), len(b), coverage)
    known, factor = is_correlation_known(min(len(a), len(b)), *common), widening_of_two(*logs, common)
    means = None if ranks and len(a) == len(b) else _of_means(*logs, coverage, factor)

    def tested(widening: float) -> float:
        welch = None if means is None else _of_means(*logs, coverage, widening)
        if welch is not None and not ranks:
            return welch[1]
        # A widened interval excludes 1 if the plain one excludes a point that is nearer to the estimate.
        nearer = ratio ** (1 - 1 / widening)
        found = _p_value([quotient / nearer for quotient in quotients], len(a), len(b))
        return found if welch is None else max(found, welch[1])

    interval = None
    if not ranks and means is not None:
        ratio, interval = exp(fmean(logs[0]) - fmean(logs[1])), means[0]
    elif cut > 0 and (means is not None or len(a) == len(b)):
        achieved = 1 - 2 * lower_tail(len(a), len(b), cut - 1)
        low, high = (ratio * (end / ratio) ** factor for end in (quotients[cut - 1], quotients[-cut]))
        if means is not None:
            low, high = min(low, means[0].low), max(high, means[0].high)
        interval = Interval(low=low, high=high, coverage=achieved)
    return RatioEstimate(
        n_a=len(a), n_b=len(b), ratio=ratio, interval=interval, p_value=tested(factor),
        reason=None if interval else Reason.TOO_FEW_SAMPLES, needed=needed, coverage=coverage, widening=factor,
        method=ComparisonMethod.RANK_SUM if ranks else ComparisonMethod.WELCH_T,
        correlation_known=known, p_if_correlated=None if known else tested(max(factor, CORRELATED)),
    )  # fmt: skip


def widening_of_two(a: Sequence[float], b: Sequence[float], common: Correlations) -> float:
    """Return how much wider the interval of the difference of two independent means must be, because neighbours in each
    series are correlated: at least 1."""
    import numpy as np  # takes long to load, and most commands compare nothing

    from fslab.stats.autocorrelation import widening

    factors = [float(widening(np.array([own]), of)[0]) for own, of in zip((a, b), common, strict=True)]
    errors = [mean_and_error([*each])[1] for each in (a, b)]
    plain = hypot(*errors)
    if not isfinite(plain) or plain == 0:
        return max(factors)
    return hypot(*(factor * error for factor, error in zip(factors, errors, strict=True))) / plain


def _of_means(
    a: list[float], b: list[float], coverage: float, widening: float
) -> tuple[Interval, float] | None:
    """Return Welch's interval of the ratio of geometric means, wider by a factor, and its p-value, from logarithms;
    None for a single value."""
    (mean_a, error_a), (mean_b, error_b) = mean_and_error(a), mean_and_error(b)
    error, apart = hypot(error_a, error_b), mean_a - mean_b
    if not isfinite(error):
        return None
    if error == 0:
        return of_logarithms(apart, apart, coverage=coverage), float(apart == 0)
    shares = ((error_a / error) ** 4 / (len(a) - 1), (error_b / error) ** 4 / (len(b) - 1))
    freedom = 1 / sum(shares)
    half = two_sided_quantile(1 - coverage, freedom) * error * widening
    interval = of_logarithms(apart - half, apart + half, coverage=coverage)
    return interval, two_sided_tail(apart / error / widening, freedom)


def lower_tail(size_a: int, size_b: int, value: int) -> float:
    """Return P(U ≤ value) for the Mann–Whitney U of two samples from one continuous distribution. Exact.

    Source: Mann & Whitney, Ann. Math. Statist. 18 (1947) 50.
    """
    return sum(_counts(size_a, size_b)[: value + 1]) / comb(size_a + size_b, size_a)


def pairs_needed(coverage: float) -> int:
    """Return the smallest equal size of two samples that can give ``coverage`` (4 for 95 %, 5 for 99 %)."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage is a probability between 0 and 1, not {coverage}")
    size = 1
    while 1 - 2 / comb(2 * size, size) < coverage:
        size += 1
    return size


@lru_cache(maxsize=256)
def _counts(size_a: int, size_b: int) -> tuple[int, ...]:
    """Return how many arrangements of the two samples have U = 0, 1, …, size_a·size_b.

    These are the coefficients of the Gaussian binomial ∏ (1 − q^(size_b+i)) / (1 − q^i), i = 1 … size_a.
    """
    counts = [1] + [0] * (size_a * size_b)
    for i in range(1, size_a + 1):
        for power in range(len(counts) - 1, size_b + i - 1, -1):
            counts[power] -= counts[power - size_b - i]
        for power in range(i, len(counts)):
            counts[power] += counts[power - i]
    return tuple(counts)


def _cut(size_a: int, size_b: int, coverage: float) -> int:
    """Return the largest rank c with 1 − 2·P(U < c) ≥ coverage; 0 if there is none."""
    total, below, cut = comb(size_a + size_b, size_a), 0, 0
    for count in _counts(size_a, size_b)[: (size_a * size_b + 1) // 2]:
        below += count
        if 1 - 2 * below / total < coverage:
            break
        cut += 1
    return cut


def _p_value(quotients: Sequence[float], size_a: int, size_b: int) -> float:
    """Return the exact two-sided p-value. Ties count against a difference, as in the closed interval."""
    above = sum(quotient > 1 for quotient in quotients)
    below = sum(quotient < 1 for quotient in quotients)
    against = len(quotients) - max(above, below)
    return min(1.0, 2 * lower_tail(size_a, size_b, against))


def _geometric_median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return sqrt(ordered[middle - 1]) * sqrt(ordered[middle])
