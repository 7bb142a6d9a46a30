"""Geometric means of ratios over workloads: one per stack, direction and block size, never across these. Pure.

Ratios are averaged geometrically: Fleming & Wallace, *How not to lie with statistics*, Commun. ACM 29 (1986) 218.
"""

from collections.abc import Sequence
from math import exp, log

from fslab.analysis.campaign_comparison_model import ComparisonLine, RatioMean
from fslab.analysis.comparison_model import Span
from fslab.stats.compare import compare_ratio
from fslab.units import Direction

Key = tuple[str, Direction, str | None]


def means(lines: Sequence[ComparisonLine], coverage: float) -> tuple[RatioMean, ...]:
    """Return the means over two or more workloads. A workload counts once, with its first metric of that direction."""
    groups: dict[Key, dict[tuple[str, str], ComparisonLine]] = {}
    for line in lines:
        if line.ratio is not None and line.better is not Direction.NEITHER:
            group = groups.setdefault((line.stack, line.better, line.block_size), {})
            group.setdefault((line.workload, line.cache), line)
    return tuple(
        _mean(key, list(group.values()), coverage) for key, group in groups.items() if len(group) > 1
    )


def _mean(key: Key, lines: Sequence[ComparisonLine], coverage: float) -> RatioMean:
    stack, better, block_size = key
    ratios = [line.ratio for line in lines if line.ratio is not None]
    return RatioMean(
        stack=stack, better=better, block_size=block_size, of=len(lines), ratio=geometric(ratios),
        interval=_interval(lines, coverage),
    )  # fmt: skip


def geometric(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def _interval(lines: Sequence[ComparisonLine], coverage: float) -> Span | None:
    """Return the interval of the mean, or None if a ratio has no interval.

    If all k ratios lie in their intervals, their mean lies between the means of the ends. All ratios do so with
    probability ``coverage`` if each does with 1 − (1 − coverage)/k (Bonferroni). This is valid for any dependence
    between the workloads, so the interval is wide.
    """
    each = 1 - (1 - coverage) / len(lines)
    estimates = [compare_ratio(line.b.values, line.a.values, coverage=each) for line in lines]
    intervals = [estimate.interval for estimate in estimates if estimate.interval is not None]
    if len(intervals) < len(lines):
        return None
    achieved = 1 - sum(1 - interval.coverage for interval in intervals)
    low, high = (geometric([getattr(interval, end) for interval in intervals]) for end in ("low", "high"))
    return Span(low=low, high=high, coverage=achieved)
