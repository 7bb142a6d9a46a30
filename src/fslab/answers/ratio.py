"""Computes the ratio of two stacks, its interval and its verdict: the only code that compares stacks. Pure.

``stats`` has the estimators; this module chooses the one that suits the question, corrects for the number of questions
of a family, and gives the verdict. What a verdict means in words is in ``answers.verdict_words``.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import log

from fslab.answers.model import INDEPENDENCE_LEAST, Answer, Counted, Verdict
from fslab.stats import Interval, Reason
from fslab.stats.comparison_settled import (
    Goal,
    further_blocks,
    is_equivalent,
    is_settled,
    most_forecast,
    size_for,
    trials_to_detect,
)
from fslab.stats.counts import compare_counts
from fslab.stats.estimate_model import (
    PAIRS_LEAST,
    CommonCorrelation,
    NoisePrior,
    RatioEstimate,
    invalid_samples,
    no_ratio,
    of_two_campaigns,
)
from fslab.stats.interim_looks import Looks, compare_at_look
from fslab.stats.median import estimate_median, median
from fslab.stats.multiple_testing import benjamini_hochberg, holm, most_true
from fslab.stats.paired_differences import compare_blocks, in_order
from fslab.stats.unpaired_differences import compare_ratio
from fslab.stopping_settings import MARGIN
from fslab.units import Direction, Unit

__all__ = [  # and what is defined here
    "PAIRS_LEAST", "CommonCorrelation", "Goal", "Looks", "NoisePrior", "most_forecast", "of_two_campaigns",
    "trials_to_detect",
]  # fmt: skip

COVERAGE = 0.95

Values = Mapping[int, float]
Estimate = RatioEstimate
false_discoveries = benjamini_hochberg


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """How many times as large is ``over`` as ``under``? Both are positive values by block.

    ``names``: the labels of both. ``better``: which direction is better. ``margin``: differences below this share do
    not matter. ``family``: questions with the same family are read together, so that a false difference among all of
    them has the probability of one (Holm). ``paired``: values of one block were measured side by side. ``unit``: of the
    values. ``counts``: they are counts, or (another unit) amounts, of which some may be 0. If one direction is better,
    they are those of events: more trials are asked for only if twice as many would show the present difference.
    ``prior``: the noise of this comparison as other cells show it, or only how much trials resemble the ones before.
    ``block_s``: seconds that one more block takes.
    ``blocks``: the number of blocks that both took part in, if failed trials made it larger than the number of values;
    the level of a look depends on it.
    """

    over: Values
    under: Values
    names: tuple[str, str] = ("", "")
    better: Direction = Direction.NEITHER
    margin: float = MARGIN
    family: Hashable = None
    paired: bool = True
    unit: Unit = Unit.COUNT
    counts: bool = False
    prior: NoisePrior | None = field(default=None, repr=False)
    block_s: float | None = None
    blocks: int | None = None


def answer(
    questions: Sequence[Question],
    *,
    looks: Looks | None = None,
    coverage: float = COVERAGE,
    goal: Goal = Goal.DECIDED,
) -> tuple[Answer, ...]:
    """Return an answer to each question. ``looks``: of a campaign with interim analyses. ``goal``: when a question is
    settled."""
    families = [each.family for each in questions]
    estimates = [
        estimate(each, looks=looks, coverage=coverage, among=families.count(each.family))
        for each in questions
    ]
    alone = _in_families(questions, [each.p_value for each in estimates])
    correlated = _in_families(
        questions,
        [each.p_value if each.p_if_correlated is None else each.p_if_correlated for each in estimates],
    )
    return tuple(
        _of(each, found, p_family, wider, families.count(each.family), looks, goal)
        for each, found, p_family, wider in zip(questions, estimates, alone, correlated, strict=True)
    )


def estimate(
    question: Question, *, looks: Looks | None = None, coverage: float = COVERAGE, among: int = 1
) -> Estimate:
    """Return the estimate of the ratio (of counts with zeros: of the difference) with its interval.

    ``among``: the number of questions of its family.
    """
    over, under = question.over, question.under
    common = (None, None) if question.prior is None else question.prior.alone
    counts = question.counts and not all([*over.values(), *under.values()])
    if not (counts or question.paired):
        return compare_ratio(in_order(over), in_order(under), coverage=coverage, common=common, among=among)
    compare = (
        partial(
            compare_counts, paired=question.paired, amounts=question.unit is not Unit.COUNT, common=common
        )
        if counts
        else partial(compare_blocks, prior=question.prior, among=among)
    )
    if looks is None or not question.paired:
        return compare(over, under, coverage=coverage)
    blocks = None if counts else question.blocks
    looks = replace(looks, coverage=coverage)
    return compare_at_look(over, under, looks=looks, blocks=blocks, compare=compare)


def estimate_figure(values: Values, *, looks: Looks | None, coverage: float, blocks: int) -> Estimate:
    """Return the estimate of the median of one figure, of which some values are 0. ``blocks``: those that it took part
    in."""
    if looks is None:
        return estimate_median([*values.values()], coverage=coverage)
    level = replace(looks, coverage=coverage).coverage_at(blocks or len(values))
    return replace(estimate_median([*values.values()], coverage=level), coverage=coverage)


def fit_correlation(cells: Sequence[Values]) -> CommonCorrelation | None:
    """Call :func:`fslab.stats.autocorrelation.of_cells`, and import numpy only now."""
    from fslab.stats.autocorrelation import of_cells  # noqa: PLC0415 - numpy

    return of_cells(cells)


def fit_noise(workloads: Sequence[Sequence[Values]]) -> NoisePrior | None:
    """Call :func:`fslab.stats.moderated_variance.fit`, and import numpy only now."""
    from fslab.stats.moderated_variance import fit  # noqa: PLC0415 - numpy

    return fit(workloads)


def unfit(values: Sequence[float]) -> Reason | None:
    """Return why values have no logarithms; None if they have."""
    return invalid_samples(values, [1.0])


def without(size: int, reason: Reason, needed: int, coverage: float) -> Estimate:
    """Return the estimate of what has no ratio, or no interval yet."""
    return no_ratio(size, size, reason, needed, coverage)


def _in_families(questions: Sequence[Question], p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values after Holm's correction over those of the same family. Questions without a test do not
    count."""
    members: dict[Hashable, list[int]] = {}
    for index, (question, p_value) in enumerate(zip(questions, p_values, strict=True)):
        if p_value is not None:
            members.setdefault(question.family, []).append(index)
    adjusted: list[float | None] = [None] * len(p_values)
    for chosen in members.values():
        related = most_true([questions[index].names for index in chosen])
        corrected = holm([p_values[index] or 0.0 for index in chosen], related)
        for index, p_value in zip(chosen, corrected, strict=True):
            adjusted[index] = p_value
    return adjusted


def _of(
    question: Question, found: Estimate, p_family: float | None, correlated: float | None, among: int,
    looks: Looks | None, goal: Goal,
) -> Answer:  # fmt: skip
    """Return the answer. ``correlated``: the p-value after Holm's correction if trials resembled the previous ones.
    ``among``: number of questions of the family."""
    alpha = 1 - found.coverage
    differs = found.differs is True
    holds = None if p_family is None else differs and p_family <= alpha
    fragile = found.rests_on_independence
    if found.p_if_correlated is not None and correlated is not None and holds:
        fragile = fragile or correlated > alpha
    verdict = _verdict(question, found)
    settled = is_settled(found, bool(holds) and not fragile, goal=goal, precision=question.margin)
    alone = settled or holds is None or goal is Goal.PRECISE
    further = _further(question, found, verdict, 1 if alone else among, looks, goal)
    if (
        _are_events(question)
        and verdict is Verdict.OPEN
        and not 0 < (further or 0) <= _possible(found, looks)
    ):
        verdict, further, settled = Verdict.NOT_SHOWN, None, True
    medians = median([*question.over.values()]), median([*question.under.values()])
    return Answer(
        over=question.names[0], under=question.names[1], better=question.better, margin=question.margin,
        verdict=verdict, ratio=found.ratio, interval=found.interval,
        n=(found.n_a, found.n_b), needed=found.needed, method=found.method.value, p_value=found.p_value,
        p_family=p_family, holds=holds, fragile=fragile,
        interval_if_correlated=found.interval_if_correlated,
        settled=settled, further=further,
        further_s=further * question.block_s if further and question.block_s else None,
        of_medians=medians[0] / medians[1] if found.ratio is not None and medians[0] and medians[1] else None,
        more=found.more, more_interval=found.more_interval, unit=question.unit, counted=_counted(question),
    )  # fmt: skip


def _possible(found: Estimate, looks: Looks | None) -> float:
    """Return how many more blocks a difference of counts may need: as many as there are; with ``looks``, what is left
    of them, with what a forecast from few blocks can be wrong by."""
    size = min(found.n_a, found.n_b)
    return size if looks is None else most_forecast(max(0, looks.most - size), size)


def _counted(question: Question) -> tuple[Counted, Counted] | None:
    """Return what was counted on both sides; None if a side has no value, or the values are no counts."""
    if not (question.counts and question.over and question.under):
        return None
    over, under = (
        Counted(trials=len(values), with_events=sum(map(bool, values)), most=max(values), unit=question.unit)
        for values in ([*question.over.values()], [*question.under.values()])
    )
    return over, under


def _verdict(question: Question, found: Estimate) -> Verdict:
    match found.reason:
        case Reason.NO_SAMPLES:
            return Verdict.MISSING
        case Reason.NOT_POSITIVE | Reason.NOT_FINITE:
            return Verdict.NO_RATIO
        case Reason.TOO_FEW_SAMPLES:
            return Verdict.TOO_FEW
        case Reason.NO_EVENTS:
            return Verdict.NONE_SEEN
        case None:
            pass
    if found.differs:
        return Verdict.LARGER if found.is_larger else Verdict.SMALLER
    # How events cluster is unknown, so that equal counts of few trials do not show that their rates are equal.
    alike = is_equivalent(found, question.margin) and not _are_events(question)
    return Verdict.ALIKE if alike else Verdict.OPEN


def read_as_counts(unit: Unit, better: Direction, values: Iterable[float]) -> bool:
    """Return whether values are those of events: counts, or what should be low and is 0 in a trial, such as a loss."""
    return unit is Unit.COUNT or (better is Direction.LOWER and 0 in values)


def _are_events(question: Question) -> bool:
    return question.counts and question.better is not Direction.NEITHER


def _further(
    question: Question, found: Estimate, verdict: Verdict, among: int, looks: Looks | None, goal: Goal
) -> int | None:
    """Return about how many more blocks decide the question; None if this is unknown."""
    size = min(found.n_a, found.n_b)
    if among > 1:  # significant after Holm's correction at the latest if it is at the family's first level
        found = estimate(question, looks=looks, coverage=1 - (1 - found.coverage) / among)
    if verdict is Verdict.TOO_FEW or found.reason is Reason.TOO_FEW_SAMPLES:
        return max(1, found.needed - size)
    return further_blocks(found, precision=question.margin, goal=goal, looks=looks)


def further_from(found: Estimate, margin: float, *, looks: Looks | None) -> int | None:
    """Return about how many more blocks show on which side of 1 an estimate lies, or that it is within the margin."""
    return further_blocks(found, precision=margin, goal=Goal.DECIDED, looks=looks)


def size_until(found: Answer, bound: float) -> int | None:
    """Return about how many values of each side end the interval before ``bound``, if the ratio stays what it is; None
    if this is unknown."""
    if found.ratio is None or found.interval is None:
        return None
    distance, wide = abs(log(found.ratio / bound)), found.interval_if_correlated

    def size(interval: Interval) -> int | None:
        half = log(interval.high / interval.low) / 2
        return size_for(distance, half, min(found.n), coverage=interval.coverage)

    plain = size(found.interval)
    if wide is None or plain is None or plain >= INDEPENDENCE_LEAST:
        return plain
    return min(INDEPENDENCE_LEAST, size(wide) or INDEPENDENCE_LEAST)
