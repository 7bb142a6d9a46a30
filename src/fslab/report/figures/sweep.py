"""Figures over parameters (threads, block size, disks): a curve per stack over one, a grid of medians over two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Row, Summary
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
    title = _axis.title_of(row.metric, row.unit, row.better)
    words = dict(places)
    labels = "".join(f"datum.value == {at!r} ? '{text}' : " for at, text in words.items()) + "''"
    scale = {"type": "log", "base": 2, "nice": False} if is_log else {"zero": False, "nice": False}
    ticks = {"values": list(words), "labelExpr": labels, "grid": False}
    x = _axis.quantity("at", parameter, scale=scale, axis=ticks)
    y = _axis.quantity("median", title, axis=_axis.value_axis(row.unit), scale={"zero": True})
    spec = _axis.base(
        f"{name}: {title} by {parameter}",
        height=260,
        usermeta={_axis.SWITCH: {"channel": "y"}},
        encoding={"x": x, "color": present.colour()},
        layer=_curve_layers(data, y, title, parameter, present),
    )
    drawn = sum(each["low"] is not None for each in data)
    return Figure(
        id=key,
        title=f"{name}: {metric_text(row.metric)} by {parameter}",
        spec=spec,
        caption=f"Median and interval at each value of {parameter}.",
        alt=f"{title} of {name} over {parameter} from {places[0][1]} to {places[-1][1]}, a curve for each of "
        f"{', '.join(present.labels)}.",
        marks={
            "step": len(data),
            "curve": len(present.labels),
            "interval": drawn,
        },
    )


def _step(spot: Spot, parameter: str) -> dict[str, Any]:
    (at, words), interval = spot.numbers[parameter], spot.summary.interval
    return {
        "stack": spot.stack, "at": at, "words": words, "median": _axis.rounded(spot.summary.median),
        "low": _axis.rounded(interval.low) if interval else None,
        "high": _axis.rounded(interval.high) if interval else None,
    }  # fmt: skip


def _curve_layers(
    data: list[dict[str, Any]], y: dict[str, Any], title: str, parameter: str, present: StackStyles
) -> list[dict[str, Any]]:
    intervals = [row for row in data if row["low"] is not None]
    rule = {"type": "rule", "strokeWidth": 5, "opacity": 0.3}
    told = [
        {"field": "stack"},
        {"field": "words", "title": parameter},
        {"field": "median", "title": title, "format": ".4~s"},
    ]
    point = {"type": "point", "filled": True, "size": 50}
    return [
        *[_axis.layer("interval", rule, intervals, y={**y, "field": "low"}, y2={"field": "high"})]
        * bool(intervals),
        _axis.layer("curve", {"type": "line", "strokeWidth": 2}, data, y=y, strokeDash=present.dash()),
        _axis.layer("step", point, data, y=y, shape=present.shape(), tooltip=told),
    ]


def surface_figure(
    key: str, name: str, row: Row, parameters: Sequence[str], spots: Sequence[Spot], labels: Sequence[str]
) -> Figure:
    """Return the figure: a panel per stack, one colour scale for all panels, the median as text in each field.

    ``parameters``: on the x axis and on the y axis. ``labels``: labels of the panels, in order.
    """
    across, up = (
        [words for _, words in sorted({spot.numbers[parameter] for spot in spots})]
        for parameter in parameters
    )
    up.reverse()
    data = [_field(spot, parameters, row.unit) for spot in spots]
    title = _axis.title_of(row.metric, row.unit, row.better)
    x = _side("x", across, parameters[0])
    y = _side("y", up, parameters[1])
    medians = [spot.summary.median or 0.0 for spot in spots]
    middle = (
        min(medians) + max(medians)
    ) / 2  # of the colours: fields above it have dark text, those below it light
    panel = {
        "width": _axis.WIDTH,
        "height": 26 * len(up),
        "encoding": {"x": x, "y": y},
        "layer": _surface_layers(title, row.unit, middle),
    }
    spec = _axis.base(
        f"{name}: {title} by {parameters[0]} and {parameters[1]}",
        data={"values": data}, facet=_axis.panels(labels), spacing=14, spec=panel,
    )  # fmt: skip
    return Figure(
        id=key,
        title=f"{name}: {metric_text(row.metric)} by {parameters[0]} and {parameters[1]}",
        spec=spec,
        caption="Medians; all panels share one scale of colours.",
        alt=f"{title} of {name} over {parameters[0]} ({across[0]} to {across[-1]}) and {parameters[1]} ({up[-1]} to "
        f"{up[0]}), a panel for each of {', '.join(labels)}.",
        marks={"field": len(data), "figure": len(data)},
    )


def _field(spot: Spot, parameters: Sequence[str], unit: Unit) -> dict[str, Any]:
    x, y = (spot.numbers[parameter][1] for parameter in parameters)
    median = spot.summary.median or 0.0
    text = format_value(median, unit).split(" ")[0] + _prefix(median, unit)
    return {"stack": spot.stack, "x": x, "y": y, "median": _axis.rounded(median), "text": text}


def _side(field: str, words: list[str], title: str) -> dict[str, Any]:
    axis = {"labelAngle": 0, "grid": False} if field == "x" else {"grid": False}
    return {"field": field, "type": "ordinal", "sort": words, "title": title, "axis": axis}


def _surface_layers(title: str, unit: Unit, middle: float) -> list[dict[str, Any]]:
    legend = {
        "orient": "bottom",
        "labelExpr": _axis.label_expression(unit),
        "gradientLength": 200,
        "title": title,
    }
    colour = _axis.quantity("median", title, scale={"scheme": "cividis", "zero": False}, legend=legend)
    dark = {"condition": {"test": f"datum.median > {middle}", "value": "#000"}, "value": "#fff"}
    return [
        _axis.layer("field", {"type": "rect", "stroke": "var(--paper)"}, color=colour),
        _axis.layer("figure", {"type": "text", "fontSize": 11}, text={"field": "text"}, color=dark),
    ]


def _prefix(value: float, unit: Unit) -> str:
    """Return the prefix of the unit, such as ``M`` for ``12 MB/s``; for times the whole unit. The legend has it."""
    written = format_value(value, unit).partition(" ")[2]
    return (
        f" {written.removesuffix(unit.value)}".rstrip()
        if unit in {Unit.BYTES_PER_SECOND, Unit.BYTES}
        else f" {written}"
        if unit is Unit.NANOSECONDS
        else ""
    )
