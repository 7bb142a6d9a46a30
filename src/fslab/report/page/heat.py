"""The heat map: each stack relative to the best of each row, and the recommended stacks. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from fslab.analysis.comparison_model import Mark
from fslab.analysis.standings import UNDECIDED, Standing
from fslab.report.conclusion_words import margin
from fslab.report.model import Report, Row, Summary
from fslab.report.page.model import HeatRow, HeatTile
from fslab.units import Direction, format_value

Asked = Collection[tuple[str, str]]
MOST_NAMED = 3


def rows(
    report: Report, standings: Sequence[Standing], anchors: Mapping[str, str], asked: Asked | None = None
) -> tuple[HeatRow, ...]:
    """Return a row for each metric of each workload.

    ``anchors``: workload → anchor of its section. ``asked``: the pairs of workload and stack id that the study
    measures, None: all.
    """
    by_key = {(each.workload, each.metric): each for each in standings}
    impossible = {
        (place.workload, place.stack)
        for note in report.notes
        if note.kind == "unsupported"
        for place in note.places
    }
    found = (
        _row(row, by_key.get((row.workload, row.metric)), report, anchors[row.workload], impossible)
        for row in report.rows
    )
    return tuple(found if asked is None else (_without(row, report, asked) for row in found))


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


def _row(
    row: Row, standing: Standing | None, report: Report, anchor: str, impossible: Collection[tuple[str, str]]
) -> HeatRow:
    labels = {stack.id: stack.label for stack in report.stacks}
    best = best_of(row)
    tiles = tuple(_tile(row, summary, best, labels[summary.stack], impossible) for summary in row.summaries)
    chosen = [labels[summary.stack] for summary in row.summaries if summary.mark is not Mark.NONE]
    return HeatRow(
        workload=row.workload,
        anchor=anchor,
        metric=row.metric.replace("_", " "),
        lower=row.better is Direction.LOWER,
        tiles=tiles,
        take=_recommended(chosen, standing),
        sure=margin(standing) if standing else "",
    )


def _without(row: HeatRow, report: Report, asked: Asked) -> HeatRow:
    """Mark the tiles of stacks on which the study does not run the workload, so that they are blank."""
    tiles = (
        replace(tile, asked=(row.workload, stack.id) in asked)
        for tile, stack in zip(row.tiles, report.stacks, strict=True)
    )
    return replace(row, tiles=tuple(tiles))


def _tile(
    row: Row, summary: Summary, best: float | None, label: str, impossible: Collection[tuple[str, str]]
) -> HeatTile:
    # A colour means "better", which single trials cannot show.
    tested = any(item.interval is not None for item in row.comparisons)
    how_good = share(row, summary, best) if tested or not row.comparisons else None
    value = format_value(summary.median, row.unit)
    if summary.median is None:
        kinds = {
            "not possible here": (row.workload, label) in impossible,
            "failed": summary.n_failed,
            "invalid": summary.n_invalid,
            "unknown": summary.n_unknown,
        }
        return HeatTile(
            stack=label, share=None, value="–", decided=True,
            words=next((kind for kind, count in kinds.items() if count), "no trial"),
        )  # fmt: skip
    open_row = all(other.mark is Mark.NONE for other in row.summaries)
    decided = summary.mark is not Mark.MAYBE_BEST and not open_row
    words = (
        "the best of all"
        if summary.mark is Mark.BEST
        else "clearly worse"
        if decided
        else "may equal the best"
    )
    return HeatTile(stack=label, share=how_good, value=value, words=words, decided=decided)


def _recommended(chosen: Sequence[str], standing: Standing | None) -> str:
    """Return the stacks that may be the best, in short if there are many.

    Returns "undecided" for an inconclusive row in which no stack is shown to be worse.
    """
    if standing is None:
        return ""
    if standing.certainty in UNDECIDED and not standing.worse:
        return "undecided"
    return " or ".join(chosen) if len(chosen) <= MOST_NAMED else ", ".join(standing.labels)
