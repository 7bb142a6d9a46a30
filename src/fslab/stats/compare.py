"""Estimates the ratio of two samples, with an exact distribution-free interval.

Also contains Holm's correction for several comparisons. Pure functions; they must not know what the numbers mean, nor
which direction is better. scipy has the Mann–Whitney test, but not its critical values, not the interval, and not
Holm's correction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import comb, exp, isfinite, log, sqrt

from fslab.stats import Reason
from fslab.stats.interval import Interval

# With fewer blocks, estimates of an autocorrelation of 0.5 and of 0 are too similar to distinguish the two.
INDEPENDENCE_LEAST = 20
CORRELATED = sqrt(3)  # how much wider an interval must be for an autocorrelation of 0.5


class ComparisonMethod(StrEnum):
    """The method that computed an interval."""

    PAIRED_T = "paired_t"
    MODERATED_T = "moderated_t"
    SIGNED_RANK = "signed_rank"
    ASYMMETRIC = "asymmetric"
    RANK_SUM = "rank_sum"
    COUNTS = "counts"
    MEDIAN = "median"


@dataclass(frozen=True, kw_only=True, slots=True)
class RatioEstimate:
    """The ratio of sample a (``n_a`` values) to sample b (``n_b`` values). If paired, both count the common blocks.

    ``interval`` is None if the samples cannot give the wanted coverage. ``ratio`` and ``p_value`` are None if there is
    no ratio at all. ``reason``: why one of them is None. ``p_value``: two-sided, for "the ratio is 1". ``needed``: the
    size that both samples must have for the wanted coverage. ``coverage``: the wanted one. With interim analyses, it
    and ``p_value`` are over all looks, and the interval's own coverage is that of this look. ``widening``: the factor
    by which the interval is wider because trials are correlated with the ones before them. ``more``, ``more_interval``:
    instead of a ratio, the difference a − b of counts, on average of the blocks (:mod:`fslab.stats.counts`).
    ``borrowed``: degrees of freedom that the noise of other cells adds (:mod:`fslab.stats.moderation`).
    ``correlation_known``: the data show how much trials resemble the ones before. ``p_if_correlated``: of paired
    samples of which this is not known, the p-value of :attr:`interval_if_correlated`.
    """

    n_a: int
    n_b: int
    ratio: float | None
    interval: Interval | None
    p_value: float | None
    reason: Reason | None
    needed: int
    method: ComparisonMethod = ComparisonMethod.RANK_SUM
    coverage: float = 0.95
    widening: float = 1.0
    more: float | None = None
    more_interval: Interval | None = None
    borrowed: float = 0.0
    correlation_known: bool = False
    p_if_correlated: float | None = None

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval of the ratio's logarithm: 0.05 is nearly ± 5 %. Of counts: in events."""
        if self.more_interval is not None:
            return (self.more_interval.high - self.more_interval.low) / 2
        return None if self.interval is None else log(self.interval.high / self.interval.low) / 2

    @property
    def differs(self) -> bool | None:
        """Whether the interval excludes 1 (0 for a difference of counts); None without an interval."""
        if self.more_interval is not None:
            return not self.more_interval.low <= 0 <= self.more_interval.high
        if self.interval is None:
            return None
        return not self.interval.low <= 1 <= self.interval.high

    @property
    def is_larger(self) -> bool | None:
        """Whether a is larger than b; None if they are equal or nothing is known."""
        above = self.more if self.ratio is None else log(self.ratio)
        return above > 0 if above else None

    @property
    def rests_on_independence(self) -> bool:
        """Whether it differs, but would not if successive trials were correlated, and this is unknown.

        20 blocks are needed to know it, or 10 of many cells. An autocorrelation of 0.5 makes intervals √3 times as
        wide (``CORRELATED``).
        """
        wide = self.interval_if_correlated
        return self.differs is True and wide is not None and wide.low < 1 < wide.high

    @property
    def interval_if_correlated(self) -> Interval | None:
        """The interval for an autocorrelation of 0.5, if there are too few blocks to estimate it; otherwise None."""
        known = self.correlation_known or self.n_a >= INDEPENDENCE_LEAST
        if self.interval is None or self.interval.low <= 0 or known:
            return None
        low, high = log(self.interval.low), log(self.interval.high)
        middle, half = (low + high) / 2, max(1.0, CORRELATED / self.widening) * (high - low) / 2
        return Interval(low=exp(middle - half), high=exp(middle + half), coverage=self.interval.coverage)


def compare_ratio(a: Sequence[float], b: Sequence[float], *, coverage: float = 0.95) -> RatioEstimate:
    """Return the ratio a/b: Hodges–Lehmann estimate on logarithms, exact Mann–Whitney interval.

    The estimate is the (geometric) median of all quotients aᵢ/bⱼ. The interval runs from the c-th smallest to the c-th
    largest of them. c is the largest rank with 1 − 2·P(U < c) ≥ coverage, where U is the Mann–Whitney statistic of two
    samples from one distribution. The two distributions of log values are assumed to differ by a shift only. With ties,
    the coverage is at least the stated one. Sizes 4 and 4 are the smallest equal ones for 95 %; 5 and 5 give c = 3,
    96.8 %.
    Source: Hodges & Lehmann, Ann. Math. Statist. 34 (1963) 598; Hollander & Wolfe, *Nonparametric Statistical Methods*,
    2nd ed. 1999, sections 4.1–4.3.
    """
    needed = pairs_needed(coverage)
    reason = invalid_samples(a, b)
    if reason is not None:
        return no_ratio(len(a), len(b), reason, needed, coverage)
    quotients = sorted(x / y for x in a for y in b)
    cut = _cut(len(a), len(b), coverage)
    interval = None
    if cut > 0:
        achieved = 1 - 2 * lower_tail(len(a), len(b), cut - 1)
        interval = Interval(low=quotients[cut - 1], high=quotients[-cut], coverage=achieved)
    return RatioEstimate(
        n_a=len(a), n_b=len(b), ratio=_geometric_median(quotients), interval=interval,
        p_value=_p_value(quotients, len(a), len(b)),
        reason=None if interval else Reason.TOO_FEW_SAMPLES, needed=needed, coverage=coverage,
    )  # fmt: skip


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


def holm(p_values: Sequence[float], most_true: Sequence[int] | None = None) -> list[float]:
    """Return adjusted p-values in the given order.

    If all differences with an adjusted p-value ≤ α are accepted, the error rate of the whole family is at most α.
    ``most_true``: once none, one, two, … hypotheses are false, how many of the others can be true (``all_pairs``);
    default: all. Source: Holm, Scand. J. Statist. 6 (1979) 65.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    factors = most_true or range(len(p_values), 0, -1)
    for factor, index in zip(factors, sorted(range(len(p_values)), key=p_values.__getitem__), strict=True):
        largest = max(largest, min(1.0, factor * p_values[index]))
        adjusted[index] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values in the given order.

    If all differences with an adjusted p-value ≤ α are accepted, at most a share α of them is expected to be false.
    Source: Benjamini & Hochberg, J. R. Statist. Soc. B 57 (1995) 289.
    """
    adjusted = [0.0] * len(p_values)
    least = 1.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, index in reversed(list(enumerate(order, 1))):
        least = min(least, p_values[index] * len(p_values) / rank)
        adjusted[index] = least
    return adjusted


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


def invalid_samples(a: Sequence[float], b: Sequence[float]) -> Reason | None:
    """Return why these values have no ratio; None if they have one."""
    if not a or not b:
        return Reason.NO_SAMPLES
    if not all(map(isfinite, (*a, *b))):
        return Reason.NOT_FINITE
    if min(*a, *b) <= 0:
        return Reason.NOT_POSITIVE
    return None


def no_ratio(size_a: int, size_b: int, reason: Reason, needed: int, coverage: float) -> RatioEstimate:
    """Return the estimate of samples that have no ratio."""
    return RatioEstimate(
        n_a=size_a, n_b=size_b, ratio=None, interval=None, p_value=None, reason=reason,
        needed=needed, coverage=coverage,
    )  # fmt: skip
