"""Compares all stacks of one row with each other, and corrects for the number of comparisons. Pure.

``stats`` computes the statistics; this module decides which stacks are compared. Stacks on different kinds of machines
are never compared.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from fslab.analysis.groups import Group
from fslab.cell import StackSpec
from fslab.record import Metric
from fslab.stats.compare import RatioEstimate, holm
from fslab.stats.counts import compare_counts
from fslab.stats.goal import Goal, is_settled
from fslab.stats.noise_prior import NoisePrior
from fslab.stats.paired import compare_blocks
from fslab.stats.ranking import RankPlace, rank
from fslab.stats.sequential import Looks, compare_at_look
from fslab.stopping import StoppingRule
from fslab.units import Direction

ALL_MATTER = 5
PriorOf = Callable[[str, str], NoisePrior | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The usable values of one metric on one stack, by block."""

    stack: str
    spec: StackSpec
    values: Mapping[int, float]

    @property
    def median(self) -> float:
        """The median. Raises StatisticsError if there is no value."""
        return statistics.median(self.values.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """The ratio ``a`` ÷ ``b`` (stack ids). ``p_family``: p-value after Holm's correction over all pairs of the row.

    ``p_family_if_correlated``: the same if trials resembled the ones before, and there are too few blocks to know it.
    """

    a: str
    b: str
    estimate: RatioEstimate
    p_family: float | None
    p_family_if_correlated: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RowPairs:
    """All pairs of one row. ``samples``: those with at least one value, in the order of the plan."""

    samples: tuple[Sample, ...]
    pairs: tuple[Pair, ...]
    better: Direction
    coverage: float

    @property
    def leader(self) -> Sample | None:
        """The sample with the best median (the first of equals) of those that no other one is shown to beat; the first
        sample if no direction is preferred.

        Trials are paired by block, medians are not: a stack with missing blocks can be better in each common block and
        have the worse median.
        """
        sign = {Direction.HIGHER: 1, Direction.LOWER: -1, Direction.NEITHER: 0}[self.better]
        beaten = {
            stack for pair in self.pairs for stack in (pair.a, pair.b) if self.is_ahead(pair, stack) is False
        }
        free = [sample for sample in self.samples if sample.stack not in beaten] or self.samples
        return max(free, key=lambda sample: sign * sample.median, default=None)

    def is_ahead(self, pair: Pair, stack: str) -> bool | None:
        """Return whether this stack of the pair is significantly better (by this comparison alone), or worse (False).

        None if neither is known.
        """
        if self.better is Direction.NEITHER or pair.estimate.is_larger is None or not pair.estimate.differs:
            return None
        return (pair.estimate.is_larger == (pair.a == stack)) == (self.better is Direction.HIGHER)

    def of(self, stack: str) -> list[Pair]:
        """Return the pairs that contain a stack."""
        return [pair for pair in self.pairs if stack in {pair.a, pair.b}]

    def holds(self, pair: Pair) -> bool:
        """Return whether the pair differs significantly after Holm's correction over all comparisons of the row."""
        known = pair.p_family is not None and pair.p_family <= 1 - self.coverage
        return known and pair.estimate.differs is True

    def rests_on_independence(self, pair: Pair) -> bool:
        """Return whether the difference would not be significant if successive trials were correlated.

        Its significance is that of the difference alone or, if it holds together with the others, that after Holm's
        correction. False with enough blocks to estimate the autocorrelation.
        """
        estimate, correlated = pair.estimate, pair.p_family_if_correlated
        if estimate.p_if_correlated is not None and correlated is not None and self.holds(pair):
            return correlated > 1 - self.coverage or estimate.rests_on_independence
        return estimate.rests_on_independence

    def _is_firm(self, pair: Pair) -> bool:
        return self.holds(pair) and not self.rests_on_independence(pair)

    def winner(self, pair: Pair) -> str | None:
        """Return the stack of the pair that is significantly better; None if neither is."""
        if self.better is Direction.NEITHER or pair.estimate.is_larger is None or not self.holds(pair):
            return None
        larger, smaller = (pair.a, pair.b) if pair.estimate.is_larger else (pair.b, pair.a)
        return larger if self.better is Direction.HIGHER else smaller

    def ranking(self) -> tuple[RankPlace, ...]:
        """Return groups of indistinguishable stacks, the best first; empty if nothing can be ranked."""
        if self.better is Direction.NEITHER or all(pair.estimate.differs is None for pair in self.pairs):
            return ()
        return rank(
            {sample.stack: sample.median for sample in self.samples},
            {(pair.a, pair.b): self.winner(pair) for pair in self.pairs},
            better=self.better,
        )

    def settled(self, *, goal: Goal, precision: float) -> list[tuple[Pair, bool]]:
        """Return the pairs for which trials are repeated, each with whether it is settled.

        These are all pairs; with more than ``ALL_MATTER`` stacks, only each stack against the leader. The leader is
        determined from the same trials, so a difference must be significant among all pairs in this case too.
        """
        leader = None if len(self.samples) <= ALL_MATTER else self.leader
        return [
            (pair, is_settled(pair.estimate, self._is_firm(pair), goal=goal, precision=precision))
            for pair in (self.of(leader.stack) if leader else self.pairs)
        ]


def looks_of(stopping: StoppingRule) -> Looks | None:
    """Return the schedule of interim analyses; None if the campaign has a fixed number of trials."""
    if stopping.precision is None:
        return None
    return Looks(first=stopping.trials, most=stopping.planned_most or stopping.most)


def comparable(one: StackSpec, other: StackSpec) -> bool:
    """Return whether two stacks may be compared: they run on the same kind of machine.

    The figures of a guest also depend on its machine. Different kernels on one kind of machine are compared: a study
    with two kernels asks for that.
    """
    return one.machine.type == other.machine.type


def row_pairs(
    samples: Sequence[Sample],
    better: Direction,
    *,
    coverage: float,
    looks: Looks | None,
    counts: bool = False,
    prior: PriorOf = lambda *_: None,
) -> RowPairs:
    """Return all pairs of stacks that have a value and may be compared.

    ``counts``: the values are counts of events, which may be 0. ``prior``: returns the noise of a
    comparison of two stacks (ids), as other cells show it.
    """
    present = tuple(sample for sample in samples if sample.values)
    found = []
    for one, other in combinations(present, 2):
        if comparable(one.spec, other.spec):
            own = prior(one.stack, other.stack)
            estimate = _estimate(one, other, coverage, looks, counts=counts, prior=own)
            found.append((one.stack, other.stack, estimate))
    # Pairs without a test are not part of the family.
    estimates = [estimate for _, _, estimate in found]
    alone = _in_family([estimate.p_value for estimate in estimates])
    correlated = _in_family(
        [each.p_value if each.p_if_correlated is None else each.p_if_correlated for each in estimates]
    )
    pairs = tuple(
        Pair(a=a, b=b, estimate=estimate, p_family=p_family, p_family_if_correlated=wider)
        for (a, b, estimate), p_family, wider in zip(found, alone, correlated, strict=True)
    )  # fmt: skip
    return RowPairs(samples=present, pairs=pairs, better=better, coverage=coverage)


def _in_family(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values after Holm's correction over those that exist."""
    adjusted = iter(holm([each for each in p_values if each is not None]))
    return [None if each is None else next(adjusted) for each in p_values]


def samples_of(group: Group, metric: Metric) -> list[Sample]:
    """Return a sample for each stack of a group."""
    return [
        Sample(stack=stack, spec=cell.stack, values=group.by_block(metric.name, stack))
        for stack, cell in group.cells.items()
    ]


def inverse(estimate: RatioEstimate) -> RatioEstimate:
    """Return the same comparison as b ÷ a."""
    interval, more = estimate.interval, estimate.more_interval
    return replace(
        estimate,
        n_a=estimate.n_b,
        n_b=estimate.n_a,
        ratio=None if estimate.ratio is None else 1 / estimate.ratio,
        interval=None
        if interval is None
        else replace(interval, low=1 / interval.high, high=1 / interval.low),
        more=None if estimate.more is None else -estimate.more,
        more_interval=None if more is None else replace(more, low=-more.high, high=-more.low),
    )


def _estimate(
    one: Sample,
    other: Sample,
    coverage: float,
    looks: Looks | None,
    *,
    counts: bool,
    prior: NoisePrior | None,
) -> RatioEstimate:
    if counts and not all([*one.values.values(), *other.values.values()]):
        if looks is not None:
            return compare_at_look(one.values, other.values, looks=looks, counts=True)
        return compare_counts(one.values, other.values, coverage=coverage)
    if looks is not None:
        return compare_at_look(one.values, other.values, looks=looks, prior=prior)
    return compare_blocks(one.values, other.values, coverage=coverage, prior=prior)
