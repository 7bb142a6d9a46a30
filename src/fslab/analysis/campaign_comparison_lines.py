"""The result of comparing two sets of results, as plain values for the terminal and ``--json``, and its lines. Pure.

``compare_results`` creates it. B is always described relative to A.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean, geometric_mean

from fslab.analysis.usable_trials import is_failed, usable_values
from fslab.answers.model import Answer, Verdict
from fslab.answers.ratio import COVERAGE, Looks, Question, estimate
from fslab.answers.verdict_words import verdict_words
from fslab.cell import Cell, Frozen, grouped
from fslab.machine.differences import Difference
from fslab.stats import Interval
from fslab.stats.median import half_range, median
from fslab.trial_record import Metric, TrialRecord
from fslab.units import Direction, Unit, shown_size
from fslab.workloads import traits_of


class Side(Frozen):
    """One of the two sets of results. ``name`` is the name given by the user.

    ``trials`` counts the stored trials, ``usable`` those that are compared, ``with_warnings`` the usable ones with
    warnings; ``warnings``: how many of these by kind of warning. ``sequential``: trials were repeated until the ranking
    of the set's own stacks was clear, so the number of trials depends on the measured values.
    """

    name: str
    campaigns: tuple[str, ...]
    study: str | None
    begun: datetime | None
    trials: int
    usable: int
    with_warnings: int
    warnings: dict[str, int] = {}
    kernels: tuple[str, ...]
    machines: tuple[str, ...]
    sequential: bool = False


class SampleSummary(Frozen):
    """The usable values of one metric of one cell; ``spread``: half their range as a fraction of the median.

    ``failed``: number of trials of the cell that failed or are unsupported on that machine.
    """

    values: tuple[float, ...]
    median: float | None
    spread: float | None
    failed: int = 0

    @property
    def broken(self) -> bool:
        """Whether there is no value and trials failed."""
        return not self.values and self.failed > 0


class ComparisonLine(Frozen):
    """One metric of one workload on one stack (``ext4 → xfs`` if two stacks are compared). The answer is about B ÷ A.

    ``verdict``: the answer in words. ``sampled``: ``trials`` if each value is that of one trial, ``campaigns`` if it is
    the median of one campaign's trials.
    """

    stack: str
    workload: str
    cache: str
    sampled: str
    block_size: str | None
    metric: str
    unit: Unit
    better: Direction
    a: SampleSummary
    b: SampleSummary
    answer: Answer
    verdict: str

    @property
    def is_broken(self) -> bool:
        """Whether A works and B does not: B has no values because trials failed (invalid trials alone do not count as
        failed), or :attr:`has_stopped`."""
        return (bool(self.a.values) and self.b.broken) or self.has_stopped

    @property
    def has_stopped(self) -> bool:
        """Whether what should be high is above 0 in each trial of A and 0 in each of B, with three or more each.

        If a trial of both had the same chance q to be 0, this would have the probability (q·(1 − q))ⁿ, which is at most
        1/64.
        """
        enough = min(self.answer.n) >= self.answer.needed
        no_ratio = self.answer.verdict is Verdict.NO_RATIO and self.better is Direction.HIGHER
        return no_ratio and enough and min(self.a.values) > 0 and not any(self.b.values)


class RatioMean(Frozen):
    """Geometric mean of the ratios B ÷ A of ``of`` workloads. All their metrics have the same preferred direction.

    ``interval`` covers the mean of the true ratios (each ratio's interval has a Bonferroni-corrected coverage);
    None if there are too few trials.
    """

    stack: str
    better: Direction
    block_size: str | None
    of: int
    ratio: float
    interval: Interval | None


class CampaignComparison(Frozen):
    """A comparison of two sets of results. ``only_a``, ``only_b``: cells without a partner. ``same_stack``: why two
    stacks are the same one, so that their ratios are noise; None if they differ."""

    a: Side
    b: Side
    coverage: float
    differences: tuple[Difference, ...]
    lines: tuple[ComparisonLine, ...]
    means: tuple[RatioMean, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    same_stack: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line before it is answered. ``cells``, ``trials``: of A and of B. ``question``: about B ÷ A."""

    cells: tuple[Cell, Cell]
    trials: tuple[Sequence[TrialRecord], Sequence[TrialRecord]]
    metric: Metric
    sampled: str
    question: Question

    def answered(self, answer: Answer, *, same: bool = False) -> ComparisonLine:
        """``same``: A and B are the same stack."""
        cell, metric = self.cells[0], self.metric
        failed_a, failed_b = (sum(map(is_failed, own)) for own in self.trials)
        b = _sample(self.question.over, failed_b)
        line = ComparisonLine(
            stack=" → ".join(dict.fromkeys(each.stack.name for each in self.cells)),
            workload=cell.workload.name, cache=cell.cache.value, sampled=self.sampled,
            block_size=" → ".join(dict.fromkeys(filter(None, map(_block_size, self.cells)))) or None,
            metric=metric.name, unit=metric.unit, better=metric.better,
            a=_sample(self.question.under, failed_a), b=b, answer=answer,
            verdict=self._verdict(answer, b, same=same),
        )  # fmt: skip
        if not line.has_stopped:
            return line
        return line.model_copy(update={"verdict": f"0 in all {len(b.values)} {self.sampled} of B"})

    def _verdict(self, answer: Answer, b: SampleSummary, *, same: bool) -> str:
        if answer.verdict is not Verdict.MISSING:
            return "the same stack" if same else verdict_words(answer, self.metric.unit, each=self.sampled)
        if b.broken and self.question.under:
            return "failed in B"
        sides = (("A", self.question.under), ("B", self.question.over))
        return f"no usable value in {' and '.join(name for name, values in sides if not values)}"


def values_by_campaign(trials: Iterable[TrialRecord], metric: Metric) -> dict[int, float]:
    """Return the median of each campaign's usable trials of a cell, numbered in the order of the campaigns.

    Of counts, it is the mean, which is 0 only if no trial counted anything.
    """
    by_campaign = grouped(trials, lambda trial: trial.key.campaign).values()
    values = ([*usable_values(each, metric.name).values()] for each in by_campaign)
    middles = ((fmean(each) if metric.unit is Unit.COUNT else median(each)) for each in values if each)
    return dict(enumerate(value for value in middles if value is not None))


def change_for_worse(ratio: float, better: Direction) -> float:
    """Return how much worse B is, as a fraction of A: 0.05 for a rate 5 % lower or a time 5 % longer."""
    return ratio - 1 if better is Direction.LOWER else 1 - ratio


def _block_size(cell: Cell) -> str | None:
    """Return the request size of a cell's workload. Means never combine different block sizes."""
    return ",".join(map(shown_size, traits_of(cell.workload).request_bytes)) or None


def _sample(values: Mapping[int, float], failed: int) -> SampleSummary:
    known = [*values.values()]
    return SampleSummary(values=tuple(known), median=median(known), spread=half_range(known), failed=failed)


def means(
    lines: Sequence[ComparisonLine], questions: Sequence[Question], *, looks: Looks | None
) -> tuple[RatioMean, ...]:
    """Return the means over two or more workloads. A workload counts once, with its first metric of that direction.

    ``questions``: those of the lines.
    """
    groups: dict[tuple[str, Direction, str | None], dict[tuple[str, str], tuple[float, Question]]] = {}
    for line, question in zip(lines, questions, strict=True):
        if line.answer.ratio is not None and line.better is not Direction.NEITHER:
            group = groups.setdefault((line.stack, line.better, line.block_size), {})
            group.setdefault((line.workload, line.cache), (line.answer.ratio, question))
    return tuple(
        RatioMean(
            stack=stack, better=better, block_size=block_size, of=len(group),
            ratio=geometric_mean([ratio for ratio, _ in group.values()]),
            interval=_interval([question for _, question in group.values()], looks),
        )
        for (stack, better, block_size), group in groups.items()
        if len(group) > 1
    )  # fmt: skip


def _interval(questions: Sequence[Question], looks: Looks | None) -> Interval | None:
    """Return the interval of the mean, or None if a ratio has no interval.

    If all k ratios lie in their intervals, their mean lies between the means of the ends. All ratios do so with
    probability ``COVERAGE`` if each does with 1 − (1 − COVERAGE)/k (Bonferroni). This is valid for any dependence
    between the workloads, so the interval is wide.
    """
    each = 1 - (1 - COVERAGE) / len(questions)
    estimates = [estimate(question, looks=looks, coverage=each) for question in questions]
    intervals = [found.interval for found in estimates if found.interval is not None]
    if len(intervals) < len(questions):
        return None
    # The coverage of an interval at a look is that of this look, which is higher than that over all looks.
    achieved = 1 - sum(
        1 - min(found.coverage, interval.coverage)
        for found, interval in zip(estimates, intervals, strict=True)
    )
    low, high = (
        geometric_mean([getattr(interval, end) for interval in intervals]) for end in ("low", "high")
    )
    return Interval(low=low, high=high, coverage=achieved)
