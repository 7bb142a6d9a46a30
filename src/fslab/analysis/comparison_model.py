"""What a comparison of stacks says, as plain values: which differs, by how much, and who leads."""

from enum import StrEnum

from fslab.cell import Frozen

COARSE = 0.2  # a tie that could hide a larger difference is inconclusive


class Mark(StrEnum):
    """How a stack stands in its row.

    ``best``: its ratio interval against every other stack leaves out 1, on the better side. This is an
    intersection-union test (Berger, Technometrics 24 (1982) 295): "better than all" may be said with the
    error rate of one comparison, without a correction. ``maybe_best``: not shown to be worse than the stack
    with the best median, or that stack itself where it is not shown to be better than all. ``none``: shown
    to be worse, or nothing can be said (too few trials, no better direction, nothing to compare with).
    """

    BEST = "best"
    MAYBE_BEST = "maybe_best"
    NONE = "none"


class ComparisonVerdict(StrEnum):
    """What a comparison shows."""

    DIFFERS = "differs"
    NOT_SEEN = "no_difference_seen"
    TOO_FEW = "too_few_trials"
    NO_RATIO = "no_ratio"


class Span(Frozen):
    """A confidence interval with the coverage that it achieves."""

    low: float
    high: float
    coverage: float


class Comparison(Frozen):
    """``numerator`` ÷ ``denominator`` (labels of stacks), so that above 1 the row's leader is better.

    ``p_value`` is for this comparison alone, ``p_family`` after Holm's correction over all pairs of the row;
    ``holds_together``: it differs even among all of them. ``n`` counts trials of each, or for a paired
    ``method`` the blocks that both have. ``detectable``: where the interval contains 1, how large a one (a
    share) would have been with a probability of 80 %. ``rests_on_independence``: it would not differ if trials
    resembled the ones before them, and there are too few blocks to know whether they do. ``of_medians``: the quotient
    of the medians shown, which a ratio of trials paired by block may be far from. ``more``, ``more_interval``: of
    counts of which some are 0, instead of a ratio: how many more ``numerator`` has, so that above 0 the leader is
    better.
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


class Rank(Frozen):
    """One place of a ranking: stacks (labels) that are indistinguishable.

    ``ahead``: pairs within it of which the first is shown to be better although both share the place, each
    being like a third.
    """

    rank: int
    stacks: tuple[str, ...]
    ahead: tuple[tuple[str, str], ...] = ()
