"""The heat map: each stack relative to the best of each row, and the best stacks. Pure."""

from collections.abc import Mapping, Sequence

from fslab.analysis.standings import Standing, StandingCertainty
from fslab.analysis.table_rows import Mark
from fslab.report.model import Report, Row, Summary
from fslab.report.page.model import HeatRow, HeatTile
from fslab.report.row_words import margin
from fslab.units import Direction, format_value, metric_text

MOST_NAMED = 3
_UNDECIDED = {StandingCertainty.OPEN: "needs more trials", StandingCertainty.COUNTED: "no difference shown"}


def rows(report: Report, standings: Sequence[Standing], anchors: Mapping[str, str]) -> tuple[HeatRow, ...]:
    """Return a row for each metric of each workload. ``anchors``: workload → anchor of its section."""
    by_key = {(each.workload, each.metric): each for each in standings}
    keyed = [(row, by_key.get((row.workload, row.metric))) for row in report.rows]
    return tuple(_row(row, standing, report, anchors[row.workload]) for row, standing in keyed)


def share(row: Row, summary: Summary, best: float | None) -> float | None:
    """Return 1 for the best median, 0.5 for half as good; None if the values allow no such comparison."""
    if summary.median is None or not best or summary.median <= 0 or row.better is Direction.NEITHER:
        return None
    return summary.median / best if row.better is Direction.HIGHER else best / summary.median


def best_of(row: Row) -> float | None:
    known = [summary.median for summary in row.summaries if summary.median is not None]
    if not known:
        return None
    return min(known) if row.better is Direction.LOWER else max(known)


def _row(row: Row, standing: Standing | None, report: Report, anchor: str) -> HeatRow:
    labels = report.labels
    best = best_of(row)
    apart = standing.not_compared if standing else ()
    tiles = tuple(
        _tile(row, summary, best, label, compared=label not in apart)
        for summary in row.summaries
        for label in [labels[summary.stack]]
    )
    chosen = [labels[summary.stack] for summary in row.summaries if summary.mark is not Mark.NONE]
    return HeatRow(
        workload=row.workload,
        anchor=anchor,
        metric=metric_text(row.metric),
        lower=row.better is Direction.LOWER,
        tiles=tiles,
        take=_best_stacks(chosen, standing),
        sure=margin(standing) if standing else "",
    )


def _tile(row: Row, summary: Summary, best: float | None, label: str, *, compared: bool) -> HeatTile:
    """``compared``: with the leader, as all on its kind of machine are."""
    # A colour means "better", which neither single trials nor a single stack can show.
    tested = compared and any(item.interval is not None for item in row.answers)
    how_good = share(row, summary, best) if tested else None
    value = format_value(summary.median, row.unit)
    if summary.median is None:
        return HeatTile(
            stack=label, share=None, value="–", decided=True, words=summary.absence, asked=summary.planned
        )
    if not (row.answers and compared):
        words = "nothing to compare with" if compared else "on another kind of machine, not compared"
        return HeatTile(stack=label, share=None, value=value, words=words, decided=True)
    open_row = all(other.mark is Mark.NONE for other in row.summaries)
    decided = summary.mark is not Mark.MAYBE_BEST and not open_row
    words = "the best of all" if summary.mark is Mark.BEST else "clearly worse"
    words = words if decided else "may equal the best"
    return HeatTile(stack=label, share=how_good, value=value, words=words, decided=decided)


def _best_stacks(chosen: Sequence[str], standing: Standing | None) -> str:
    """Return the stacks that may be the best, in short if there are many.

    If no stack is shown to be worse, returns why not.
    """
    if standing is None:
        return ""
    if not standing.worse and standing.certainty in _UNDECIDED:
        return _UNDECIDED[standing.certainty]
    return " or ".join(chosen) if len(chosen) <= MOST_NAMED else ", ".join(standing.labels)
