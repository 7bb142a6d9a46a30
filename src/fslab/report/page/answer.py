"""The answer in a few sentences: who is best how often, the largest difference, and what is not decided. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fslab.analysis.comparison_model import Comparison, ComparisonVerdict, Mark
from fslab.report.model import Report, Row
from fslab.report.words import listed, ratio_text, share_text
from fslab.units import Direction


def sentences(report: Report) -> tuple[str, ...]:
    """At most three."""
    rows = [row for row in report.rows if row.comparisons]
    if not report.rows or not report.counts.stored:
        return ("No trial is stored yet.",)
    if not rows:
        return ("Only one stack has figures: there is nothing to compare.",)
    return tuple([*_best(rows, report), *_largest(rows), *_least_sure(rows)][:3])


def how_sure(report: Report) -> str:
    """Trials, intervals, and how many comparisons hold."""
    tested = [item for row in report.rows for item in row.comparisons if item.interval is not None]
    held = sum(bool(item.holds_together) for item in tested)
    counts = sorted({len(s.values) for row in report.rows for s in row.summaries if s.values})
    trials = (
        f"{counts[0]} trials"
        if len(counts) == 1
        else f"{counts[0]} to {counts[-1]} trials"
        if counts
        else "no trial"
    )
    shown = (
        f"{held} of the {len(tested)} comparisons with the best of a row show a difference that holds among all of "
        "that row (Holm)"
        if tested
        else "too few trials for an interval"
    )
    told = f"{shown[0].upper()}{shown[1:]}"
    cover = f"Intervals cover the true ratio in {report.coverage * 100:g} % of campaigns"
    return f"{cover}; {trials} of each, in random order. {told}."


def metric_words(row: Row, report: Report) -> str:
    """``random-write``, or with its metric where the workload has several."""
    alone = sum(other.workload == row.workload for other in report.rows) == 1
    return row.workload if alone else f"{row.workload} ({row.metric.replace('_', ' ')})"


def _best(rows: Sequence[Row], report: Report) -> Iterator[str]:
    """How often each is best; of a single figure, who it is and who follows."""
    if len(rows) == 1:
        nearest = min(rows[0].comparisons, key=lambda item: item.ratio or float("inf"))
        yield _told(rows[0], nearest, report_name=metric_words(rows[0], report))
        return
    judged = [row for row in rows if row.better is not Direction.NEITHER]
    labels = {stack.id: stack.label for stack in report.stacks}
    first = Counter(labels[s.stack] for row in judged for s in row.summaries if s.mark is Mark.BEST)
    open_rows = len(judged) - first.total()
    if not judged:
        return
    if not first:
        yield f"No clear winner in any of {len(judged)} metrics."
        return
    parts = [f"{name} in {count}" for name, count in first.most_common(4)]
    rest = f"; no clear winner in {open_rows}" if open_rows else ""
    yield f"Best of {len(judged)} metrics: {listed(parts)}{rest}."


def _largest(rows: Sequence[Row]) -> Iterator[str]:
    """The largest difference that holds."""
    found = [
        (item.ratio, row, item)
        for row in rows
        for item in row.comparisons
        if item.verdict is ComparisonVerdict.DIFFERS and item.holds_together and item.ratio and item.ratio > 1
    ]
    if found:
        _, row, item = max(found, key=lambda each: each[0])
        yield _told(
            row, item, report_name=f"{row.workload} ({row.metric.replace('_', ' ')})", most=len(found) > 1
        )


def _least_sure(rows: Sequence[Row]) -> Iterator[str]:
    """What is not decided; else the smallest difference that is."""
    unseen = [
        (row, item) for row in rows for item in row.comparisons if item.verdict is ComparisonVerdict.NOT_SEEN
    ]
    few = [item for row in rows for item in row.comparisons if item.verdict is ComparisonVerdict.TOO_FEW]
    if unseen:
        row, item = max(unseen, key=lambda each: each[1].detectable or 0)
        seen = (
            f"; a difference above {share_text(item.detectable)} would be detected"
            if item.detectable is not None
            else ""
        )
        more = f" ({len(unseen) - 1} more are undecided)" if len(unseen) > 1 else ""
        yield (
            f"{item.numerator} and {item.denominator} are indistinguishable for {row.workload} "
            f"({row.metric.replace('_', ' ')}){seen}{more}."
        )
    elif few:
        needed = max(item.needed for item in few)
        yield f"{len(few)} comparisons have too few trials: {needed} of each needed."
    elif sure := [(item.ratio or 0.0, row, item) for row in rows for item in row.comparisons if item.ratio]:
        _, row, item = min(sure, key=lambda each: each[0])
        yield f"The closest is {_told(row, item, report_name=row.workload, begins=False)}"


def _told(row: Row, item: Comparison, *, report_name: str, most: bool = False, begins: bool = True) -> str:
    name = f"{'For' if begins else 'for'} {report_name}"
    if item.ratio is None or item.interval is None:
        return f"{name} there are too few trials to tell {item.numerator} from {item.denominator}."
    ratio, low, high = ratio_text(item.ratio, item.interval.low, item.interval.high)
    figure = (
        f"{ratio} × {'that of ' if row.better is Direction.LOWER else ''}{item.denominator} ({low}–{high})"
    )
    subject = f"the latency or time of {item.numerator}" if row.better is Direction.LOWER else item.numerator
    unsure = "" if item.verdict is ComparisonVerdict.DIFFERS else ", which may be chance"
    return f"{name} {subject} is {figure}{unsure}{', the largest difference' * most}."
