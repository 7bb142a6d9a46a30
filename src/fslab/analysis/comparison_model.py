"""The result of comparing stacks, as plain values: which stacks differ, by how much, and the ranking."""

from enum import StrEnum
from typing import Self

from fslab.cell import Frozen
from fslab.stats.interval import Interval

COARSE = 0.2  # a tie is inconclusive if only a larger difference would be detected


class Mark(StrEnum):
    """The position of a stack in its row.

    ``best``: its ratio interval against every other stack excludes 1, on the better side. This is an intersection-union
    test (Berger, Technometrics 24 (1982) 295): "better than all" has the error rate of one comparison, without a
    correction. ``maybe_best``: not significantly worse than the stack with the best median, or this stack itself if it
    is not significantly better than all others. ``none``: significantly worse, or unknown (too few trials, no preferred
    direction, nothing to compare with).
    """

    BEST = "best"
    MAYBE_BEST = "maybe_best"
    NONE = "none"


class ComparisonVerdict(StrEnum):
    """The verdict of a comparison."""

    DIFFERS = "differs"
    NOT_DETECTED = "no_difference_seen"
    TOO_FEW = "too_few_trials"
    NO_RATIO = "no_ratio"


class Span(Frozen):
    """A confidence interval and its achieved coverage."""

    low: float
    high: float
    coverage: float

    @classmethod
    def of(cls, interval: Interval) -> Self:
        return cls(low=interval.low, high=interval.high, coverage=interval.coverage)


class Comparison(Frozen):
    """The ratio ``numerator`` ÷ ``denominator`` (labels of stacks). Above 1, the row's leader is better.

    ``p_value`` is for this comparison alone, ``p_family`` after Holm's correction over all pairs of the row.
    ``holds_together``: the difference is significant after this correction. ``n``: number of trials of each stack; with
    a paired ``method``, number of blocks that both have. ``detectable``: if the interval contains 1, the difference (a
    share) that would have been detected with 80 % probability. ``rests_on_independence``: the difference would not be
    significant if each trial resembled the previous one, and there are too few blocks to know that. ``of_medians``: the
    quotient of the medians shown; it may be far from a ratio of trials paired by block. ``more``,
    ``more_interval``: used instead of a ratio for counts of which some are 0: how many more ``numerator`` has. Above 0,
    the leader is better.
    """

    numerator: str
    denominator: str
    verdict: ComparisonVerdict
    ratio: float | None
    interval: Span | None
    p_value: float | None
    p_family: float | None
    holds_together: bool | None
    n: tuple[int, int]
    needed: int
    method: str
    detectable: float | None = None
    rests_on_independence: bool = False
    of_medians: float | None = None
    more: float | None = None
    more_interval: Span | None = None

    def other(self, stack: str | None) -> str:
        """Return the label of the stack that ``stack`` is compared with."""
        return self.denominator if self.numerator == stack else self.numerator


class Rank(Frozen):
    """One place of a ranking: stacks (labels) that are indistinguishable.

    ``ahead``: pairs of stacks that share the place although the first is significantly better, because each of them is
    indistinguishable from a third stack.
    """

    rank: int
    stacks: tuple[str, ...]
    ahead: tuple[tuple[str, str], ...] = ()
