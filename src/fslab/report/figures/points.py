"""Figures of distributions: a point for each trial with median and interval (Cleveland), and latency percentiles."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, styles
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Row
from fslab.stats.median import MEDIAN_CI
from fslab.units import Unit, metric_text

# The 100th percentile (the maximum) would be at infinity on an axis of nines.
_LABELS = "datum.value < 0.31 ? '50 %' : format(100 - 100 * pow(10, -datum.value), '.6~r') + ' %'"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotPoint:
    """One trial of a stack (its label). ``kind``: ``usable``, ``warning`` (usable, with warnings) or ``invalid``."""

    stack: str
    block: int
    value: float
    kind: str


_VALIDITY = {"warning": "with warnings"}


def points_figure(
    key: str, row: Row, points: Sequence[PlotPoint], looks: StackStyles, best: float | None
) -> Figure:
    """Return the figure of one metric of one workload. Invalid trials are crosses, those with warnings are hollow.

    ``best``: the best median of the row, the denominator of the ratios.
    """
    medians = _medians(row, looks, best)
    data = [
        {
            "stack": point.stack,
            "trial": point.block + 1,
            "kind": point.kind,
            "validity": _VALIDITY.get(point.kind, point.kind),
            **_both("value", point.value, best),
        }
        for point in points
    ]
    title = styles.title_of(row.metric, row.unit, row.better)
    values = [point.value for point in points]
    near = bool(values) and min(values) > max(values) / 2
    scale = {"zero": not near, "nice": True}
    x = styles.quantity("value", title, scale=scale, axis=styles.value_axis(row.unit))
    present = [label for label in looks.labels if any(point.stack == label for point in points)]
    colour = {**looks.colour(), "legend": None}
    drawn = sum(each["low"] is not None for each in medians)
    return styles.figure(
        key,
        f"{row.workload}, {metric_text(row.metric)}: every trial",
        description=f"{row.workload}: {title}, every trial",
        height=26 * max(len(present), 1),
        usermeta=styles.switches("x", title, row.unit, row.better),
        encoding={"y": styles.names("stack", present, 260)},
        layer=_layers(row, data, medians, x, colour),
        caption=_caption(points),
        alt=f"{row.workload}, {title}. {row.words}",
        marks={"trial": len(data), "median": len(medians), "interval": drawn},
    )


def _caption(points: Sequence[PlotPoint]) -> str:
    kinds = {point.kind for point in points}
    hollow, crossed = " Hollow: with warnings.", " Crossed: invalid, not compared."
    about = f"Each point is a trial; the bar is the median, the band its {MEDIAN_CI}."
    return about + hollow * ("warning" in kinds) + crossed * ("invalid" in kinds)


def _layers(
    row: Row,
    data: list[dict[str, Any]],
    medians: list[dict[str, Any]],
    x: dict[str, Any],
    colour: dict[str, Any],
) -> list[dict[str, Any]]:
    band = {"strokeWidth": 9, "opacity": 0.28, "clip": False}
    point = {"type": "point", "size": 46, "strokeWidth": 1.4, "filled": True, "opacity": 0.85}
    tick = {"type": "tick", "thickness": 2.5, "height": 20, "size": 20, "color": "var(--ink)"}
    return [
        *styles.intervals(medians, band, "x", x, color=colour),
        styles.layer(
            "trial", point, data, x=x, stroke=colour, fill=colour, **_kinds(), tooltip=_tooltip(row)
        ),
        styles.layer("median", tick, medians, x={**x, "field": "median"}),
    ]


def _medians(row: Row, looks: StackStyles, best: float | None) -> list[dict[str, Any]]:
    return [
        {
            "stack": label,
            **_both("median", summary.median, best),
            **_both("low", summary.interval.low if summary.interval else None, best),
            **_both("high", summary.interval.high if summary.interval else None, best),
        }
        for label, summary in zip(looks.labels, row.summaries, strict=True)
        if summary.median is not None
    ]


def _both(name: str, value: float | None, best: float | None) -> dict[str, float | None]:
    """Return a value and, for a page's switch, its ratio to the best median."""
    ratio = None if value is None or not best else value / best
    return {name: styles.rounded(value), f"{name}_ratio": styles.rounded(ratio)}


def _kinds() -> dict[str, Any]:
    shapes = ["circle", "circle", "M-.7-.7L.7.7M-.7.7L.7-.7"]
    scale = {"domain": ["usable", "warning", "invalid"], "range": shapes}
    return {
        "shape": styles.name("kind", legend=None, scale=scale),
        "fillOpacity": {"condition": {"test": "datum.kind === 'usable'", "value": 0.55}, "value": 0},
    }


def _tooltip(row: Row) -> list[dict[str, Any]]:
    title = f"{metric_text(row.metric)} ({row.unit.value})"
    return [
        styles.name("stack", title="stack"),
        styles.quantity("trial", "trial"),
        styles.quantity("value", title, format=".4~s"),
        styles.name("validity", title="validity"),
    ]


def percentiles_figure(
    key: str, workload: str, operation: str, curves: Mapping[str, Mapping[float, float]], looks: StackStyles
) -> Figure:
    """Return the figure. ``curves``: stack label → percentile → latency in ns, medians over the usable trials."""
    present = looks.only(list(curves))
    data = [
        {"stack": stack, "p": percent, "ns": styles.rounded(ns),
         "nines": styles.rounded(-math.log10(1 - percent / 100))}
        for stack, curve in curves.items()
        for percent, ns in sorted(curve.items())
        if 50 <= percent < 100 and ns > 0
    ]  # fmt: skip
    last = max((row["nines"] or 0.0 for row in data if isinstance(row["nines"], float)), default=1.0)
    ticks = [0.30103, *(float(nine) for nine in range(1, math.ceil(last) + 1))]
    scale = {"domain": [0.30103, max(last, 1.0)], "nice": False}
    encoding = {
        "x": styles.quantity(
            "nines", f"share of {operation}s that took no longer",
            scale=scale, axis={"values": ticks, "labelExpr": _LABELS},
        ),
        "y": styles.quantity(
            "ns", f"{operation} latency", scale={"type": "log"},
            axis=styles.value_axis(Unit.NANOSECONDS, gridOpacity=styles.DECADES),
        ),
        "color": present.colour(), "strokeDash": present.dash(),
        "tooltip": [
            {"field": "stack", "title": "stack"}, {"field": "p", "title": "percentile"},
            {"field": "ns", "title": "latency (ns)", "format": ".4~s"},
        ],
    }  # fmt: skip
    layers = [
        styles.layer("curve", {"type": "line", "strokeWidth": 2}),
        styles.layer("percentile", {"type": "point", "filled": True, "size": 34}, shape=present.shape()),
    ]
    return styles.figure(
        key,
        f"{workload}: {operation} latency by percentile",
        description=f"{workload}: {operation} latency percentiles",
        height=240,
        data={"values": data},
        encoding=encoding,
        layer=layers,
        caption="Medians of the trials' percentiles. Each step to the right is ten times rarer.",
        alt=f"Latency of {operation}s of {workload} by percentile, a curve for each of {', '.join(present.labels)}.",
        marks={"percentile": len(data), "curve": len({str(row["stack"]) for row in data})},
    )
