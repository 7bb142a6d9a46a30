"""Finds the leader of a row, its ratio to each other stack, and the mark of each stack. Pure.

``pairs`` defines which stacks are compared and with which statistics; this module converts its results for the report.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fslab.analysis.comparison_model import Comparison, ComparisonVerdict, Mark, Rank, Span
from fslab.analysis.pairs import Pair, RowPairs, inverse
from fslab.stats import Reason
from fslab.stats.compare import RatioEstimate
from fslab.stats.power import detectable
from fslab.units import Direction


@dataclass(frozen=True, kw_only=True, slots=True)
class RowOutcome:
    """The result of a row. ``marks`` are by stack id; ``leader`` is a label, or None if there is no value.

    ``not_compared``: labels of stacks that have values but run on another kind of machine than the leader.
    """

    leader: str | None
    comparisons: tuple[Comparison, ...]
    marks: Mapping[str, Mark]
    ranking: tuple[Rank, ...]
    not_compared: tuple[str, ...]


def outcome_of(row: RowPairs, labels: Mapping[str, str], reference: str | None = None) -> RowOutcome:
    """Return the comparisons of the leader with each other stack, or of ``reference`` (a stack id) with each other.

    If the metric has no preferred direction, the first stack is used as the leader, and nothing is marked.
    """
    leader = row.leader
    if leader is None:
        return RowOutcome(leader=None, comparisons=(), marks={}, ranking=(), not_compared=())
    have = [sample.stack for sample in row.samples]
    chosen = reference if reference in have else leader.stack
    comparisons = tuple(_comparison(row, pair, chosen, labels) for pair in row.of(chosen))
    paired = {stack for pair in row.of(chosen) for stack in (pair.a, pair.b)}
    ranking = tuple(
        Rank(
            rank=place.rank,
            stacks=tuple(labels[stack] for stack in place.labels),
            ahead=tuple((labels[first], labels[second]) for first, second in place.ahead),
        )
        for place in row.ranking()
    )
    return RowOutcome(
        leader=labels[chosen],
        comparisons=comparisons,
        marks=_marks(row, leader.stack),
        ranking=ranking if len(have) > 1 else (),
        not_compared=tuple(labels[stack] for stack in have if stack not in {*paired, chosen}),
    )


def _comparison(row: RowPairs, pair: Pair, chosen: str, labels: Mapping[str, str]) -> Comparison:
    """Return the comparison, oriented so that a ratio above 1 means that the chosen stack is better."""
    over = chosen == pair.a if row.better is not Direction.LOWER else chosen == pair.b
    estimate = pair.estimate if over else inverse(pair.estimate)
    top, bottom = (pair.a, pair.b) if over else (pair.b, pair.a)
    verdict = _verdict(estimate)
    medians = {sample.stack: sample.median for sample in row.samples}
    return Comparison(
        numerator=labels[top],
        denominator=labels[bottom],
        verdict=verdict,
        ratio=estimate.ratio,
        interval=Span.of(estimate.interval) if estimate.interval else None,
        more=estimate.more,
        more_interval=Span.of(estimate.more_interval) if estimate.more_interval else None,
        p_value=estimate.p_value,
        p_family=pair.p_family,
        holds_together=None
        if pair.p_family is None
        else verdict is ComparisonVerdict.DIFFERS and row.holds(pair),
        n=(estimate.n_a, estimate.n_b),
        needed=estimate.needed,
        method=estimate.method.value,
        detectable=detectable(estimate) if verdict is ComparisonVerdict.NOT_DETECTED else None,
        rests_on_independence=row.rests_on_independence(pair),
        of_medians=medians[top] / medians[bottom] if estimate.ratio is not None and medians[bottom] else None,
    )


def _verdict(estimate: RatioEstimate) -> ComparisonVerdict:
    match estimate.reason:
        case None:
            return ComparisonVerdict.DIFFERS if estimate.differs else ComparisonVerdict.NOT_DETECTED
        case Reason.TOO_FEW_SAMPLES:
            return ComparisonVerdict.TOO_FEW
        case _:
            return ComparisonVerdict.NO_RATIO


def _marks(row: RowPairs, leader: str) -> dict[str, Mark]:
    """Return the mark of each stack that has a value; see :class:`Mark`."""
    pairs = row.of(leader)
    if row.better is Direction.NEITHER or all(pair.estimate.differs is None for pair in pairs):
        return {sample.stack: Mark.NONE for sample in row.samples}
    beaten = {_other(pair, leader): row.is_ahead(pair, leader) is True for pair in pairs}
    marks = {stack: Mark.NONE if was_beaten else Mark.MAYBE_BEST for stack, was_beaten in beaten.items()}
    # Stacks on another kind of machine are not compared, so the leader is not shown to be better than all.
    alone = len(beaten) < len(row.samples) - 1
    marks[leader] = Mark.BEST if all(beaten.values()) and not alone else Mark.MAYBE_BEST
    return {sample.stack: marks.get(sample.stack, Mark.NONE) for sample in row.samples}


def _other(pair: Pair, stack: str) -> str:
    return pair.b if pair.a == stack else pair.a
