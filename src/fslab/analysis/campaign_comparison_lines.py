"""One line of a comparison of two sets of results: the question, the figures of a cell in both, the answer. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fslab.analysis.campaign_comparison_model import ComparisonLine, SampleSummary
from fslab.analysis.usability import is_failed, is_usable
from fslab.answers.model import Answer, Verdict
from fslab.answers.question import Question
from fslab.answers.words import verdict_words
from fslab.cell import Cell, WorkloadSpec
from fslab.record import Metric, TrialRecord
from fslab.stats.interval import half_range, median
from fslab.units import Direction, shown_size
from fslab.workloads import parsed_if_known, traits_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line before it is answered. ``cells``, ``trials``: of A and of B. ``question``: about B ÷ A."""

    cells: tuple[Cell, Cell]
    trials: tuple[Sequence[TrialRecord], Sequence[TrialRecord]]
    metric: Metric
    sampled: str
    question: Question

    def answered(self, answer: Answer) -> ComparisonLine:
        cell, metric = self.cells[0], self.metric
        failed_a, failed_b = (sum(map(is_failed, own)) for own in self.trials)
        b = _sample(self.question.over, failed_b)
        return ComparisonLine(
            stack=" → ".join(dict.fromkeys(each.stack.name for each in self.cells)),
            workload=cell.workload.name, cache=cell.cache.value, sampled=self.sampled,
            block_size=" → ".join(dict.fromkeys(filter(None, map(_block_size, self.cells)))) or None,
            metric=metric.name, unit=metric.unit, better=metric.better,
            a=_sample(self.question.under, failed_a), b=b, answer=answer,
            verdict=self._verdict(answer, b),
        )  # fmt: skip

    def _verdict(self, answer: Answer, b: SampleSummary) -> str:
        if answer.verdict is not Verdict.MISSING:
            return verdict_words(answer, self.metric.unit, each=self.sampled)
        if b.broken and self.question.under:
            return "failed in B"
        sides = (("A", self.question.under), ("B", self.question.over))
        return f"no usable trial in {' and '.join(name for name, values in sides if not values)}"


def declared(workload: WorkloadSpec) -> tuple[Metric, ...]:
    """Return all metrics of a workload; empty if this version of fslab does not know the workload."""
    known = parsed_if_known(workload)
    return known.metrics() if known else ()


def values_by_block(trials: Iterable[TrialRecord], metric: str) -> dict[int, float]:
    """Return the values of a cell's usable trials by block. A probe is used if there is no metric with this name."""
    found: dict[int, float] = {}
    for trial in trials:
        if is_usable(trial):
            figure = trial.metrics.get(metric) or trial.probes.get(metric)
            if figure is not None and figure.value is not None:
                found[trial.key.block] = figure.value
    return found


def medians_by_campaign(trials: Iterable[TrialRecord], metric: str) -> dict[int, float]:
    """Return the median of each campaign's usable trials of a cell, numbered in the order of the campaigns."""
    by_campaign: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        by_campaign.setdefault(trial.key.campaign, []).append(trial)
    found = (median(list(values_by_block(each, metric).values())) for each in by_campaign.values())
    return dict(enumerate(value for value in found if value is not None))


def change_for_worse(ratio: float, better: Direction) -> float:
    """Return how much worse B is, as a fraction of A: 0.05 for a rate 5 % lower or a time 5 % longer."""
    return ratio - 1 if better is Direction.LOWER else 1 - ratio


def _block_size(cell: Cell) -> str | None:
    """Return the request size of a cell's workload. Means never combine different block sizes."""
    return ",".join(map(shown_size, traits_of(cell.workload).request_bytes)) or None


def _sample(values: Mapping[int, float], failed: int) -> SampleSummary:
    known = [*values.values()]
    return SampleSummary(values=tuple(known), median=median(known), spread=half_range(known), failed=failed)
