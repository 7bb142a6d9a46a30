"""Who leads a row, how much better than each other stack, and which marks that earns. Pure.

The statistics are ``stats``'s; this only decides what is compared with what.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from fslab.report.model import Comparison, Mark, Span, Verdict
from fslab.stats import Reason
from fslab.stats.compare import RatioEstimate, compare_ratio, holm, pairs_needed
from fslab.units import Direction


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The sound values of one stack."""

    label: str
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """``marks`` are in the order of the samples; ``leader`` is None when nobody has a value.

    ``needed_together``: trials that each stack must have for the smallest of the row's differences to hold
    after a correction for all of them.
    """

    leader: str | None
    comparisons: tuple[Comparison, ...]
    marks: tuple[Mark, ...]
    needed_together: int


def compare_row(samples: Sequence[Sample], better: Direction, coverage: float) -> Outcome:
    """Compare the stack with the best median with each other stack that has a value.

    Where no direction is better, the first stack is compared with the others and nothing is marked.
    """
    present = [sample for sample in samples if sample.values]
    if not present:
        return Outcome(leader=None, comparisons=(), marks=(Mark.NONE,) * len(samples), needed_together=0)
    leader = _leader(present, better)
    others = [sample for sample in present if sample is not leader]
    comparisons = _with_family([_compare(leader, other, better, coverage) for other in others], 1 - coverage)
    earned = _marks(comparisons, better)
    mark_of = {id(sample): mark for sample, mark in zip([leader, *others], earned, strict=True)}
    marks = tuple(mark_of.get(id(sample), Mark.NONE) for sample in samples)
    needed = pairs_needed(1 - (1 - coverage) / len(others)) if others else 0
    return Outcome(leader=leader.label, comparisons=comparisons, marks=marks, needed_together=needed)


def _leader(present: Sequence[Sample], better: Direction) -> Sample:
    sign = {Direction.HIGHER: 1, Direction.LOWER: -1, Direction.NEITHER: 0}[better]
    return max(present, key=lambda sample: sign * statistics.median(sample.values))  # the first of equals


def _compare(leader: Sample, other: Sample, better: Direction, coverage: float) -> Comparison:
    """Oriented so that a ratio above 1 speaks for the leader."""
    top, bottom = (other, leader) if better is Direction.LOWER else (leader, other)
    estimate = compare_ratio(top.values, bottom.values, coverage=coverage)
    interval = estimate.interval
    return Comparison(
        numerator=top.label,
        denominator=bottom.label,
        verdict=_verdict(estimate),
        ratio=estimate.ratio,
        interval=Span(low=interval.low, high=interval.high, coverage=interval.coverage) if interval else None,
        p_value=estimate.p_value,
        p_family=None,
        holds_together=None,
        n=(estimate.n_a, estimate.n_b),
        needed=estimate.needed,
    )


def _verdict(estimate: RatioEstimate) -> Verdict:
    match estimate.reason:
        case None:
            return Verdict.DIFFERS if estimate.differs else Verdict.NOT_SEEN
        case Reason.TOO_FEW_SAMPLES:
            return Verdict.TOO_FEW
        case Reason.NO_SAMPLES | Reason.NOT_POSITIVE | Reason.NOT_FINITE:
            return Verdict.NO_RATIO


def _with_family(comparisons: Sequence[Comparison], alpha: float) -> tuple[Comparison, ...]:
    """Add what Holm's correction over the row leaves; comparisons without a test are not of the family."""
    tested = [item for item in comparisons if item.p_value is not None]
    adjusted = iter(holm([item.p_value for item in tested if item.p_value is not None]))
    return tuple(
        item if item.p_value is None else _adjusted(item, next(adjusted), alpha) for item in comparisons
    )


def _adjusted(item: Comparison, p_family: float, alpha: float) -> Comparison:
    holds = item.verdict is Verdict.DIFFERS and p_family <= alpha
    return item.model_copy(update={"p_family": p_family, "holds_together": holds})


def _marks(comparisons: Sequence[Comparison], better: Direction) -> list[Mark]:
    """Of the leader first, then of the other side of each comparison; see :class:`Mark`."""
    if better is Direction.NEITHER or all(item.interval is None for item in comparisons):
        return [Mark.NONE] * (1 + len(comparisons))
    worse = [item.interval is not None and item.interval.low > 1 for item in comparisons]
    first = Mark.BEST if all(worse) else Mark.MAYBE_BEST
    return [first, *(Mark.NONE if beaten else Mark.MAYBE_BEST for beaten in worse)]
