"""Ratios on a log axis, one per line: with their intervals (a forest plot), and published beside measured ones."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fslab.claims.model import PublishedTable
from fslab.report.figures import Figure, styles
from fslab.units import metric_text

NUMBERS = ("published", "measured", "low", "high")
_AXIS = {"labelExpr": "format(datum.value, '.3~r') + ' ×'", "labelOverlap": True}
_ONE = {"type": "rule", "color": "var(--muted)", "strokeDash": [3, 3]}
_SPAN = {"type": "rule", "strokeWidth": 2.5, "color": "var(--s1)"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ForestRatio:
    """One comparison. ``sure``: significant after Holm correction over all comparisons."""

    label: str
    ratio: float
    low: float
    high: float
    sure: bool


def forest_figure(key: str, title: str, axis: str, ratios: Sequence[ForestRatio]) -> Figure:
    """Return the figure. ``axis``: title of the axis, with numerator and denominator."""
    data = [styles.row(each) for each in ratios]
    x = styles.quantity("low", axis, scale={"type": "log"}, axis={**_AXIS, "tickCount": 5})
    y = styles.names("label", [each.label for each in ratios], 320)
    point = {"type": "point", "size": 60, "filled": True, "stroke": "var(--s1)", "fill": "var(--s1)"}

    def sure(otherwise: float) -> dict[str, Any]:
        return {"condition": {"test": "datum.sure", "value": 1}, "value": otherwise}

    return styles.figure(
        key,
        title,
        height=22 * max(len(ratios), 1),
        layer=[
            styles.layer("one", _ONE, [{"x": 1}], x={"field": "x", "type": "quantitative"}),
            styles.layer("interval", _SPAN, data, y=y, x=x, x2={"field": "high"}, opacity=sure(0.5)),
            styles.layer(
                "ratio", point, data, y=y, x={**x, "field": "ratio"}, fillOpacity=sure(0),
                tooltip=styles.tooltip(label="", ratio=".4~r", low=".4~r", high=".4~r"),
            ),
        ],
        caption="Filled: significant after Holm correction; hollow: not significant.",
        alt=f"{title}: {len(ratios)} ratios with their intervals on a log axis.",
        marks={"ratio": len(data), "interval": len(data)},
    )  # fmt: skip


def published_figures(prefix: str, tables: Iterable[PublishedTable]) -> Iterator[Figure]:
    """Yield the figure of each table of which some figures were measured."""
    found = ((table, _published(table)) for table in tables)
    some = (each for each in found if any(row["measured"] is not None for row in each[1]))
    for number, (table, data) in enumerate(some):
        yield _published_figure(f"{prefix}{number}", table, data)


def _published(table: PublishedTable) -> list[dict[str, Any]]:
    """Return the rows of a figure: the figures of a table except those of the reference itself, whose ratio is 1."""
    return [
        {
            "label": f"{line.workload}, {metric_text(line.metric)}: {stack}",
            "published": styles.rounded(cell.printed),
            "measured": styles.rounded(cell.measured),
            "low": styles.rounded(cell.low),
            "high": styles.rounded(cell.high),
        }
        for line in table.lines
        for stack, cell in zip(table.stacks, line.cells, strict=True)
        if stack != table.reference and cell.printed is not None
    ]


# An offset puts the middle of both lines beside the mark.
_TWO_LINES = {"labelExpr": "split(datum.label, ': ')", "labelLineHeight": 13, "labelOffset": -6.5}


def _published_figure(key: str, table: PublishedTable, data: list[dict[str, Any]]) -> Figure:
    """Return the figure of one table. A published figure that was not measured has only the published mark."""
    measured = [each for each in data if each["measured"] is not None]
    intervals = [each for each in measured if each["low"] is not None and each["high"] is not None]
    title = f"Published and measured values, table {table.name}"
    labels = [each["label"] for each in data]
    return styles.figure(
        key,
        title,
        height=34 * max(len(data), 1),
        # The stack has a line of its own: in one line, labels that differ at their ends would be cut to the same text.
        encoding={"y": styles.names("label", labels, 320, **_TWO_LINES)},
        layer=_published_layers(data, measured, intervals, f"÷ {table.reference}"),
        caption=_caption(table, bare=len(intervals) < len(measured)),
        alt=f"{title}: {len(data)} published ratios to {table.reference}, {len(measured)} of them measured too.",
        marks={"interval": len(intervals), "measured": len(measured), "published": len(data)},
    )


def _caption(table: PublishedTable, *, bare: bool) -> str:
    caption = f"Each value is divided by that of {table.reference}."
    caption += " Hollow: published. Filled: measured, with its 95 % CI."
    caption += " Without a line: too few trials for a CI." * bare
    at = table.stacks.index(table.reference)
    if left_out := sum(line.cells[at].printed is None for line in table.lines):
        caption += f" {left_out} not shown: no value of {table.reference} is published."
    return caption


def _ticks(data: Sequence[dict[str, Any]]) -> list[float]:
    """Return round ratios between the least and the largest value. Vega's ticks leave 1 to 2 without any."""
    values = [each[name] for each in data for name in NUMBERS if each[name]]
    least, largest = min([1.0, *values]), max([1.0, *values])
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(largest)) + 1)
    ticks = [round(step * 10.0**decade, 9) for decade in decades for step in (1, 1.2, 1.5, 2, 3, 4, 5, 7)]
    return [tick for tick in ticks if least <= tick <= largest]


def _published_layers(
    data: Sequence[dict[str, Any]],
    measured: Sequence[dict[str, Any]],
    intervals: Sequence[dict[str, Any]],
    title: str,
) -> list[dict[str, Any]]:
    scale = {"type": "log", "nice": False, "padding": 10}
    x = styles.quantity("published", title, scale=scale, axis={**_AXIS, "values": _ticks(data)})
    filled = {"type": "point", "shape": "circle", "size": 50, "filled": True, "color": "var(--s1)"}
    hollow = {"type": "point", "shape": "diamond", "size": 120, "filled": False, "color": "var(--ink)"}
    shown = styles.tooltip(label="", published=".4~r", measured=".4~r", low=".4~r", high=".4~r")
    return [
        styles.layer("one", _ONE, [{"x": 1}], x={"field": "x", "type": "quantitative"}, y=None),
        styles.layer("interval", _SPAN, intervals, x={**x, "field": "low"}, x2={"field": "high"}),
        styles.layer("measured", filled, measured, x={**x, "field": "measured"}, tooltip=shown),
        styles.layer("published", hollow, data, x=x, tooltip=shown),
    ]
