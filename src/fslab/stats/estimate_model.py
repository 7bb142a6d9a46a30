"""The estimate of a ratio, or of a difference of counts, as values, and the noise that other cells suggest for it.

Must not import numpy: most commands compare nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite, log

from fslab.stats import Interval, Reason, of_logarithms

KNOWN_LEAST = 50  # values of all cells that show an autocorrelation of 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonCorrelation:
    """The autocorrelation ``lag1`` from block to block, estimated from so many ``values`` of all cells.

    ``least``: the number of them from which on the estimate counts as known.
    """

    lag1: float
    values: float
    least: int = KNOWN_LEAST

    @property
    def is_known(self) -> bool:
        return self.values >= self.least


Correlations = tuple[CommonCorrelation | None, CommonCorrelation | None]  # of both sides; None: unknown


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisePrior:
    """The ``variance``, suggested by other cells, of a difference of logarithms in one block.

    It counts as ``freedom`` degrees of freedom (may be infinite). Together with a comparison's own degrees of freedom,
    these are at most ``most``, the number of all cells of the group together. The prior counts in full if at least one
    in ``among`` comparisons would have such a large variance. It counts less for a larger variance, whose cell may
    differ from the others. Without any degree of freedom, only autocorrelations are known: ``correlation`` of
    differences by block, and ``alone`` of the values of each side, which matters where they have no blocks in common.
    """

    variance: float
    freedom: float
    most: float
    among: int = 4
    correlation: CommonCorrelation | None = None
    alone: Correlations = (None, None)

    def times(self, factor: float) -> "NoisePrior":
        """Return the prior of a difference whose variance is ``factor`` times as large."""
        return replace(self, variance=self.variance * factor)

    @staticmethod
    def of_sum(parts: "Sequence[NoisePrior]") -> "NoisePrior | None":
        """Return the prior of the sum of independent differences; None without any."""
        if not parts:
            return None
        known = [part.correlation for part in parts if part.correlation is not None]
        return NoisePrior(
            variance=sum(part.variance for part in parts),
            freedom=min(part.freedom for part in parts),
            most=min(part.most for part in parts),
            correlation=max(known, key=lambda one: one.lag1, default=None),
        )


def of_two_campaigns(one: CommonCorrelation | None, other: CommonCorrelation | None) -> NoisePrior:
    """Return the prior of a comparison without common blocks, of which only the autocorrelation of each side is
    known."""
    return NoisePrior(variance=1.0, freedom=0.0, most=0.0, alone=(one, other))


# Simulated at 95 % with the shapes of benches/stopping_data.py, CoV 5 %: three pairs cover 95.3–97.1 %, similar to four
# (94.8–97.9 %) and five pairs. For autocorrelated trials, more pairs do not improve the coverage.
PAIRS_LEAST = 3
# With fewer blocks, estimates of an autocorrelation of 0.5 and of 0 are too similar to distinguish the two.
INDEPENDENCE_LEAST = 20
# How much wider an interval of fewer values must be for an autocorrelation of 0.5: in a long series √3, in a short one
# more, because its values vary less about their mean. Simulated, t intervals of 3 to 19 values that are so much wider
# exclude the truth in at most 5.1 %, those √3 times as wide in 6.2.
CORRELATED = 1.85


class ComparisonMethod(StrEnum):
    PAIRED_T = "paired_t"
    MODERATED_T = "moderated_t"
    SIGNED_RANK = "signed_rank"
    ASYMMETRIC = "asymmetric"
    RANK_SUM = "rank_sum"
    WELCH_T = "welch_t"
    COUNTS = "counts"
    MEDIAN = "median"


UNPAIRED = frozenset({ComparisonMethod.RANK_SUM, ComparisonMethod.WELCH_T})


@dataclass(frozen=True, kw_only=True, slots=True)
class RatioEstimate:
    """The ratio of sample a (``n_a`` values) to sample b (``n_b`` values). If paired, both count the common blocks.

    ``interval`` is None if the samples cannot give the wanted coverage. ``ratio`` and ``p_value`` are None if there is
    no ratio at all. ``reason``: why one of them is None. ``p_value``: two-sided, for "the ratio is 1". ``needed``: the
    size that both samples must have for the wanted coverage. ``coverage``: the wanted one. With interim analyses, it
    and ``p_value`` are over all looks, and the interval's own coverage is that of this look. ``widening``: the factor
    by which the interval is wider because trials are correlated with the ones before them. ``more``, ``more_interval``:
    instead of a ratio, the difference a − b of counts, on average of the blocks (:mod:`fslab.stats.counts`).
    ``borrowed``: degrees of freedom that the noise of other cells adds (:mod:`fslab.stats.moderated_variance`).
    ``correlation_known``: the data show how much trials resemble the ones before. ``p_if_correlated``: of
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

        20 blocks are needed to know it, or 10 of many cells. For an autocorrelation of 0.5, intervals must be
        ``CORRELATED`` times as wide.
        """
        if self.differs is not True or self.if_correlated is None:
            return False
        if self.more_interval is not None:
            return abs(self.more or 0.0) < self.if_correlated * (self.half_width or 0.0)
        wide = self.interval_if_correlated
        return wide is not None and wide.low < 1 < wide.high

    @property
    def if_correlated(self) -> float | None:
        """How many times as wide the interval is for an autocorrelation of 0.5, if there are too few blocks to estimate
        it; otherwise None."""
        known = self.correlation_known or min(self.n_a, self.n_b) >= INDEPENDENCE_LEAST
        return None if known else max(1.0, CORRELATED / self.widening)

    @property
    def interval_if_correlated(self) -> Interval | None:
        """The ratio's interval for an autocorrelation of 0.5, if there are too few blocks to estimate it; otherwise
        None. That of a figure that begins at 0, which has no logarithm, is so much wider itself."""
        if self.interval is None or self.if_correlated is None:
            return None
        low, high, coverage = self.interval.low, self.interval.high, self.interval.coverage
        if low <= 0:
            return Interval(low=0.0, high=(high + self.if_correlated * high) / 2, coverage=coverage)
        low, high = log(low), log(high)
        middle, half = (low + high) / 2, self.if_correlated * (high - low) / 2
        return of_logarithms(middle - half, middle + half, coverage=coverage)


def is_correlation_known(blocks: int, *common: CommonCorrelation | None) -> bool:
    """Return whether so many blocks, or the ``common`` values of all cells (of each side), show how much trials
    resemble the ones before."""
    return blocks >= INDEPENDENCE_LEAST or all(each is not None and each.is_known for each in common)


def invalid_samples(a: Sequence[float], b: Sequence[float]) -> Reason | None:
    """Return why these values have no ratio; None if they have one."""
    if not a or not b:
        return Reason.NO_SAMPLES
    if not all(map(isfinite, (*a, *b))):
        return Reason.NOT_FINITE
    if min(*a, *b) <= 0:
        return Reason.NOT_POSITIVE
    return None


def mostly_equal(differences: Sequence[float]) -> bool:
    """Return whether more than half of the differences are equal, except for rounding; False for a single one."""
    if len(differences) < 2:
        return False
    rounded = [round(value, 12) for value in differences]
    if len(set(rounded)) == len(rounded):
        return False
    return 2 * max(Counter(rounded).values()) > len(rounded)


def no_ratio(size_a: int, size_b: int, reason: Reason, needed: int, coverage: float) -> RatioEstimate:
    return RatioEstimate(
        n_a=size_a, n_b=size_b, ratio=None, interval=None, p_value=None, reason=reason,
        needed=needed, coverage=coverage,
    )  # fmt: skip
