"""Answers a question by several campaigns of the same cells: what differs between campaigns is in the interval. Pure.

With one campaign, nothing of this is known. With several, the excess of their means over the noise within each is
measured, so that the autocorrelation of trials need not be known: it is a part of that excess.

Components of variance, of logarithms. What changes alike cancels in a ratio: all cells of the *machine*, those of a
workload (*shifts*), those of a stack on all workloads (*stacks*). What changes in a single cell does not (*changes*).
Each component is estimated from all workloads together (Paule & Mandel, J. Res. NBS 87 (1982) 377, of squares), because
two campaigns of one workload show hardly anything.

An interval with all of them, of an estimate from several campaigns, is computed from those of its terms by adding
squares of half-widths (Zou & Donner, *Stat. Med.* 27 (2008) 1693: the ends of each side separately).
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import exp, inf, log, sqrt
from statistics import fmean, variance

from fslab.answers.ratio import Estimate
from fslab.stats import Interval
from fslab.stats.distributions import two_sided_quantile

# With fewer degrees of freedom, t is so large that almost any ratio is possible.
FREEDOM_LEAST = 8
# Degrees of freedom that the common variance adds to that of a stack, if it seems to change more than the others and if
# it seems to change less. With one for both, a stack that changes three times as much as two (five) others shows false
# differences in 9 % (17).
_COMMON = (1, 4)
_HALVINGS = 60
_TINY = 1e-18

Cell = Mapping[int, float]  # logarithms of one figure by block
CampaignCells = Mapping[Hashable, Cell]  # the cells of one workload by stack
Weight = tuple[Hashable, Hashable, float]  # of a figure of this workload on this stack
_Rows = Mapping[Hashable, Sequence[float]]  # by stack, in the order of the blocks that all of them have


@dataclass(frozen=True, kw_only=True, slots=True)
class Component:
    """A ``variance`` of logarithms between campaigns, with its degrees of ``freedom``."""

    variance: float = 0.0
    freedom: float = inf


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignSpread:
    """``changes``: of a cell. ``stacks``: of a stack beside the others. ``shifts``: of a workload beside the others.
    ``machine``: of all cells. ``multiples``: by stack, its own variance of changes ÷ that of all."""

    changes: Component = Component()
    stacks: Component = Component()
    shifts: Component = Component()
    machine: Component = Component()
    multiples: Mapping[Hashable, float] = field(default_factory=dict)

    def half_width(self, weights: Sequence[Weight], coverage: float) -> float:
        """Return half the width, on logarithms, of what one campaign adds to Σ weight · ln(figure).

        Degrees of freedom of a sum of variances: Satterthwaite, Biometrics Bull. 2 (1946) 110.
        """
        of_workload, of_stack = defaultdict[Hashable, float](float), defaultdict[Hashable, float](float)
        for workload, stack, weight in weights:
            of_workload[workload] += weight
            of_stack[stack] += weight
        terms = [
            (self.changes, sum(weight**2 * self.multiples.get(stack, 1.0) for _, stack, weight in weights)),
            (self.stacks, sum(weight**2 for weight in of_stack.values())),
            (self.shifts, sum(weight**2 for weight in of_workload.values())),
            (self.machine, sum(of_stack.values()) ** 2),
        ]
        total = sum(times * each.variance for each, times in terms)
        doubt = sum((times * each.variance) ** 2 / each.freedom for each, times in terms if each.variance)
        return two_sided_quantile(1 - coverage, total**2 / doubt if doubt else inf) * sqrt(total)


NO_SPREAD = CampaignSpread()


def fit(workloads: Iterable[Sequence[Sequence[CampaignCells]]]) -> CampaignSpread | None:
    """Return the variances between campaigns; None if the workloads show too little.

    ``workloads``: for each one its figures, and for each figure the campaigns, at least two, the same for all. Cells
    without two values in each do not count. The figures of a workload count together as one.
    """
    usable = [[rows for campaigns in figures if (rows := _complete(campaigns))] for figures in workloads]
    shared = [(rows, 1 / len(own)) for own in usable for rows in own]
    by_stack = defaultdict[Hashable, list[_Effect]](list)
    for rows, share in shared:
        for stack, effect in _changes(rows, share):
            by_stack[stack].append(effect)
    changes, stacks, multiples = _split(by_stack)
    if round(changes.freedom) < FREEDOM_LEAST:
        return None
    shifts, machine, _ = _split({None: [_shift(rows, share, changes.variance) for rows, share in shared]})
    return CampaignSpread(changes=changes, stacks=stacks, shifts=shifts, machine=machine, multiples=multiples)


def _complete(campaigns: Sequence[CampaignCells]) -> list[_Rows]:
    """Return the cells with two values in each campaign, in the blocks that all of these have; nothing without two."""
    stacks = [stack for stack in campaigns[0] if all(len(cells.get(stack, ())) > 1 for cells in campaigns)]
    blocks = [sorted(set.intersection(*(set(cells[one]) for one in stacks))) for cells in campaigns if stacks]
    if len(campaigns) < 2 or min(map(len, blocks), default=0) < 2:
        return []
    return [
        {stack: [cells[stack][block] for block in common] for stack in stacks}
        for cells, common in zip(campaigns, blocks, strict=True)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignRatio:
    """The ``ratio`` in one campaign, with its ``interval``, from ``size`` blocks."""

    ratio: float
    interval: Interval
    size: int


def combined(campaigns: Sequence[CampaignRatio], half_width: float) -> tuple[float, Interval]:
    """Return the ratio and interval of several campaigns together.

    ``half_width``: of what each one adds, on logarithms. A campaign weighs by it and by its number of blocks, not by
    its own half-width: of equal ones, that whose few trials agree by chance would decide.
    """
    one = fmean(each.size * log(each.interval.high / each.interval.low) ** 2 / 4 for each in campaigns)
    weights = [1 / (one / each.size + half_width * half_width + _TINY) for each in campaigns]
    shares = [weight / sum(weights) for weight in weights]
    middle = sum(share * log(each.ratio) for share, each in zip(shares, campaigns, strict=True))
    between = sum(share * share for share in shares) * half_width * half_width

    def reach(distances: Iterable[float]) -> float:
        within = sum((share * far) ** 2 for share, far in zip(shares, distances, strict=True))
        return sqrt(within + between)

    low = middle - reach(log(each.ratio / each.interval.low) for each in campaigns)
    high = middle + reach(log(each.interval.high / each.ratio) for each in campaigns)
    coverage = min(each.interval.coverage for each in campaigns)
    return exp(middle), Interval(low=exp(low), high=exp(high), coverage=coverage)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Effect:
    """How much more a cell, or a workload, is in each campaign than on average of all. ``noise``: its variance within
    campaigns. ``share``: how often it counts, less than once for one of several figures."""

    values: Sequence[float]
    freedom: float
    noise: float
    share: float


def _changes(campaigns: Sequence[_Rows], share: float) -> Iterator[tuple[Hashable, _Effect]]:
    """Yield the effect of each stack, beside the others."""
    beside: list[dict[Hashable, list[float]]] = []
    for rows in campaigns:
        middle = _of_blocks(rows)
        beside.append({one: [a - b for a, b in zip(row, middle, strict=True)] for one, row in rows.items()})
    left = 1 - 1 / len(campaigns[0])  # of the variance of a cell, beside the mean of all
    noise = fmean(variance(row) / len(row) for rows in beside for row in rows.values())
    for stack in campaigns[0] if left else ():
        values = _centred([fmean(rows[stack]) for rows in beside])
        yield stack, _Effect(values=values, freedom=(len(values) - 1) * left, noise=noise / left, share=share)


def _shift(campaigns: Sequence[_Rows], share: float, changes: float) -> _Effect:
    """Return the effect of a workload. ``changes``: the variance of each of its cells."""
    blocks = [_of_blocks(rows) for rows in campaigns]
    noise = fmean(variance(each) / len(each) for each in blocks) + changes / len(campaigns[0])
    values = _centred([fmean(each) for each in blocks])
    return _Effect(values=values, freedom=len(values) - 1, noise=noise, share=share)


def _of_blocks(rows: _Rows) -> list[float]:
    return [fmean(each) for each in zip(*rows.values(), strict=True)]


def _centred(values: Sequence[float]) -> list[float]:
    return [value - fmean(values) for value in values]


def _split(kinds: Mapping[Hashable, list[_Effect]]) -> tuple[Component, Component, dict[Hashable, float]]:
    """Return how much effects change each by itself, and all of one kind alike; by kind, the multiple of the former."""
    means = {kind: _mean(effects) for kind, effects in kinds.items()}
    own = {kind: [_beside(each, means[kind]) for each in effects] for kind, effects in kinds.items()}
    single = _component([*chain.from_iterable(own.values())])
    alike = [replace(one, noise=one.noise + single.variance / one.share, share=1.0) for one in means.values()]
    multiples = {kind: _multiple(effects, single.variance) for kind, effects in own.items()}
    return single, _component(alike), multiples


def _mean(effects: Sequence[_Effect]) -> _Effect:
    count = sum(each.share for each in effects)
    weighted = [[each.share / count * value for value in each.values] for each in effects]
    return _Effect(
        values=[sum(each) for each in zip(*weighted, strict=True)], share=count,
        freedom=fmean(each.freedom for each in effects),
        noise=sum(each.share * each.noise for each in effects) / count**2,
    )  # fmt: skip


def _beside(effect: _Effect, mean: _Effect) -> _Effect:
    values = [a - b for a, b in zip(effect.values, mean.values, strict=True)]
    return replace(effect, values=values, freedom=effect.freedom * (1 - 1 / mean.share))


def _multiple(effects: Sequence[_Effect], between: float) -> float:
    """Return how many times as large as expected the squares are, as far as so few of them show it."""
    freedom, found = _freedom(effects), _standardised(effects, between)
    return max((found + added) / (freedom + added) for added in _COMMON)


def _component(effects: Sequence[_Effect]) -> Component:
    """Return the variance with which the squares are, on average, as large as expected; 0 if they are smaller."""
    freedom = _freedom(effects)
    low, high = 0.0, sum(value * value for each in effects for value in each.values)
    if not 0 < high < inf or _standardised(effects, low) <= freedom:
        return Component(variance=0.0, freedom=freedom)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _standardised(effects, middle) > freedom else (low, middle)
    return Component(variance=(low + high) / 2, freedom=freedom)


def _freedom(effects: Iterable[_Effect]) -> float:
    return sum(each.share * each.freedom for each in effects)


def _standardised(effects: Iterable[_Effect], between: float) -> float:
    """Return the sum of squares, each divided by its variance."""
    return sum(
        each.share * sum(value * value for value in each.values) / max(between + each.noise, _TINY)
        for each in effects
    )


def over_campaigns(found: Sequence[Estimate], spread: CampaignSpread, weights: Sequence[Weight]) -> Estimate:
    """Return the estimate of all campaigns together, from those of each campaign.

    ``weights``: those of the figures in the logarithm of the ratio. Campaigns without an interval do not count; without
    any, the first estimate is returned.
    """
    known = [each for each in found if each.interval and each.interval.low > 0 and each.ratio]
    ratios = [
        CampaignRatio(ratio=each.ratio, interval=each.interval, size=min(each.n_a, each.n_b))
        for each in known
        if each.ratio and each.interval
    ]
    if not ratios:
        return found[0]
    ratio, interval = combined(ratios, spread.half_width(weights, ratios[0].interval.coverage))
    return replace(
        known[0], ratio=ratio, interval=interval, p_value=None, correlation_known=True,
        n_a=sum(each.n_a for each in known), n_b=sum(each.n_b for each in known),
    )  # fmt: skip
