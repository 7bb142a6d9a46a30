"""Geometric means of ratios over workloads: one per stack, direction and block size, never across these. Pure.

Ratios are averaged geometrically: Fleming & Wallace, *How not to lie with statistics*, Commun. ACM 29 (1986) 218.
"""

from collections.abc import Sequence
from math import exp, log

from fslab.analysis.campaign_comparison_model import ComparisonLine, RatioMean
from fslab.answers.model import Interval
from fslab.answers.question import Looks, Question, estimate
from fslab.units import Direction

Key = tuple[str, Direction, str | None]


def means(
    lines: Sequence[ComparisonLine], questions: Sequence[Question], *, looks: Looks | None, coverage: float
) -> tuple[RatioMean, ...]:
    """Return the means over two or more workloads. A workload counts once, with its first metric of that direction.

    ``questions``: those of the lines.
    """
    groups: dict[Key, dict[tuple[str, str], tuple[float, Question]]] = {}
    for line, question in zip(lines, questions, strict=True):
        if line.answer.ratio is not None and line.better is not Direction.NEITHER:
            group = groups.setdefault((line.stack, line.better, line.block_size), {})
            group.setdefault((line.workload, line.cache), (line.answer.ratio, question))
    return tuple(
        RatioMean(
            stack=stack, better=better, block_size=block_size, of=len(group),
            ratio=geometric([ratio for ratio, _ in group.values()]),
            interval=_interval([question for _, question in group.values()], looks, coverage),
        )
        for (stack, better, block_size), group in groups.items()
        if len(group) > 1
    )  # fmt: skip


def geometric(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def _interval(questions: Sequence[Question], looks: Looks | None, coverage: float) -> Interval | None:
    """Return the interval of the mean, or None if a ratio has no interval.

    If all k ratios lie in their intervals, their mean lies between the means of the ends. All ratios do so with
    probability ``coverage`` if each does with 1 − (1 − coverage)/k (Bonferroni). This is valid for any dependence
    between the workloads, so the interval is wide.
    """
    each = 1 - (1 - coverage) / len(questions)
    estimates = [estimate(question, looks=looks, coverage=each) for question in questions]
    intervals = [found.interval for found in estimates if found.interval is not None]
    if len(intervals) < len(questions):
        return None
    # The coverage of an interval at a look is that of this look, which is higher than that over all looks.
    achieved = 1 - sum(
        1 - min(found.coverage, interval.coverage)
        for found, interval in zip(estimates, intervals, strict=True)
    )
    low, high = (geometric([getattr(interval, end) for interval in intervals]) for end in ("low", "high"))
    return Interval(low=low, high=high, coverage=achieved)
