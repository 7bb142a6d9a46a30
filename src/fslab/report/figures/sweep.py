"""Figures over parameters (threads, block size, disks): a curve per stack over one, a grid of medians over two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, styles
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Row, Summary
from fslab.stats.median import MEDIAN_CI
from fslab.units import Unit, format_value, metric_text


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """One measured value of a stack, or of a family of stacks.

    ``numbers``: parameter → its value as a number, and as the study writes it.
    """

    stack: str
    numbers: Mapping[str, tuple[float, str]]
    summary: Summary


def curve_figure(
    key: str, name: str, row: Row, parameter: str, spots: Sequence[Spot], looks: StackStyles
) -> Figure | None:
    """Return the figure; None if the parameter has one value only. Its axis has a log scale (base 2) if the largest
    value is ≥ 4 × the smallest."""
    present = looks.only([spot.stack for spot in spots])
    places = sorted(dict(spot.numbers[parameter] for spot in spots).items())
    if len(places) < 2:
        return None
    is_log = places[0][0] > 0 and places[-1][0] / places[0][0] >= 4
    data = [_step(spot, parameter) for spot in spots]
    title = styles.title_of(row.metric, row.unit, row.better)
    words = dict(places)
    labels = "".join(f"datum.value == {at!r} ? '{text}' : " for at, text in words.items()) + "''"
    scale = {"type": "log", "base": 2, "nice": False} if is_log else {"zero": False, "nice": False}
    ticks = {"values": list(words), "labelExpr": labels, "grid": False}
    x = styles.quantity("at", parameter, scale=scale, axis=ticks)
    y = styles.quantity("median", title, axis=styles.value_axis(row.unit), scale={"zero": True})
    drawn = sum(each["low"] is not None for each in data)
    return styles.figure(
        key,
        f"{name}: {metric_text(row.metric)} by {parameter}",
        description=f"{name}: {title} by {parameter}",
        height=260,
        usermeta={styles.SWITCH: {"channel": "y"}},
        encoding={"x": x, "color": present.colour()},
        layer=_curve_layers(data, y, title, parameter, present),
        caption=f"Median with its {MEDIAN_CI} at each value of {parameter}.",
        alt=f"{title} of {name} over {parameter} from {places[0][1]} to {places[-1][1]}, a curve for each of "
        f"{', '.join(present.labels)}.",
        marks={"step": len(data), "curve": len(present.labels), "interval": drawn},
    )


def _step(spot: Spot, parameter: str) -> dict[str, Any]:
    at, words = spot.numbers[parameter]
    median = styles.rounded(spot.summary.median)
    return {
        "stack": spot.stack,
        "at": at,
        "words": words,
        "median": median,
        **styles.ends(spot.summary.interval),
    }


def _curve_layers(
    data: list[dict[str, Any]], y: dict[str, Any], title: str, parameter: str, present: StackStyles
) -> list[dict[str, Any]]:
    told = [
        {"field": "stack"},
        {"field": "words", "title": parameter},
        {"field": "median", "title": title, "format": ".4~s"},
    ]
    point = {"type": "point", "filled": True, "size": 50}
    return [
        *styles.intervals(data, {"strokeWidth": 5, "opacity": 0.3}, "y", y),
        styles.layer("curve", {"type": "line", "strokeWidth": 2}, data, y=y, strokeDash=present.dash()),
        styles.layer("step", point, data, y=y, shape=present.shape(), tooltip=told),
    ]


def surface_figure(
    key: str, name: str, row: Row, parameters: Sequence[str], spots: Sequence[Spot], labels: Sequence[str]
) -> Figure:
    """Return the figure: a panel per stack, one colour scale for all panels, the median as text in each field.

    ``parameters``: on the x axis and on the y axis. ``labels``: labels of the panels, in order.
    """
    values = (sorted({spot.numbers[parameter] for spot in spots}) for parameter in parameters)
    across, up = ([words for _, words in each] for each in values)
    up.reverse()
    data = [_field(spot, parameters, row.unit) for spot in spots]
    title = styles.title_of(row.metric, row.unit, row.better)
    x = _side("x", across, parameters[0])
    y = _side("y", up, parameters[1])
    medians = [spot.summary.median or 0.0 for spot in spots]
    # Of the colours: fields above it have dark text, those below it light.
    middle = (min(medians) + max(medians)) / 2
    panel = {
        "width": styles.WIDTH,
        "height": 26 * len(up),
        "encoding": {"x": x, "y": y},
        "layer": _surface_layers(title, row.unit, middle),
    }
    return styles.figure(
        key,
        f"{name}: {metric_text(row.metric)} by {parameters[0]} and {parameters[1]}",
        description=f"{name}: {title} by {parameters[0]} and {parameters[1]}",
        data={"values": data},
        facet=styles.panels(labels),
        spacing=14,
        spec=panel,
        caption="Medians; all panels share one scale of colours.",
        alt=f"{title} of {name} over {parameters[0]} ({across[0]} to {across[-1]}) and {parameters[1]} ({up[-1]} to "
        f"{up[0]}), a panel for each of {', '.join(labels)}.",
        marks={"field": len(data), "figure": len(data)},
    )


def _field(spot: Spot, parameters: Sequence[str], unit: Unit) -> dict[str, Any]:
    x, y = (spot.numbers[parameter][1] for parameter in parameters)
    median = spot.summary.median or 0.0
    text = format_value(median, unit).split(" ")[0] + _prefix(median, unit)
    return {"stack": spot.stack, "x": x, "y": y, "median": styles.rounded(median), "text": text}


def _side(field: str, words: list[str], title: str) -> dict[str, Any]:
    axis = {"labelAngle": 0, "grid": False} if field == "x" else {"grid": False}
    return {"field": field, "type": "ordinal", "sort": words, "title": title, "axis": axis}


def _surface_layers(title: str, unit: Unit, middle: float) -> list[dict[str, Any]]:
    legend = {
        "orient": "bottom",
        "labelExpr": styles.label_expression(unit),
        "gradientLength": 200,
        "title": title,
    }
    colour = styles.quantity("median", title, scale={"scheme": "cividis", "zero": False}, legend=legend)
    dark = {"condition": {"test": f"datum.median > {middle}", "value": "#000"}, "value": "#fff"}
    return [
        styles.layer("field", {"type": "rect", "stroke": "var(--paper)"}, color=colour),
        styles.layer("figure", {"type": "text", "fontSize": 11}, text={"field": "text"}, color=dark),
    ]


def _prefix(value: float, unit: Unit) -> str:
    """Return the prefix of the unit, such as ``M`` for ``12 MB/s``; for times the whole unit. The legend has it."""
    written = format_value(value, unit).partition(" ")[2]
    if unit in {Unit.BYTES_PER_SECOND, Unit.BYTES}:
        return f" {written.removesuffix(unit.value)}".rstrip()
    return f" {written}" if unit is Unit.NANOSECONDS else ""
