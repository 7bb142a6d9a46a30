"""Figures over parameters (threads, block size, disks): a curve per stack over one, a grid of medians over two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis
from fslab.report.figures.styles import StackStyles
from fslab.units import Direction, Unit, format_value


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """The median of one stack at one pair of values. ``*_words``: the values as the study writes them."""

    stack: str
    x: float
    x_words: str
    y: float
    y_words: str
    median: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepStep:
    """The median of one stack at one value of the parameter, with its interval.

    ``words``: the parameter's value as the study writes it.
    """

    stack: str
    at: float
    words: str
    median: float
    low: float | None
    high: float | None


def curve_figure(
    key: str,
    name: str,
    parameter: str,
    metric: str,
    unit: Unit,
    better: Direction,
    steps: Sequence[SweepStep],
    looks: StackStyles,
) -> Figure:
    """Return the figure. The parameter's axis has a log scale (base 2) if the largest value is ≥ 4 × the smallest."""
    present = looks.only([step.stack for step in steps])
    places = sorted({step.at: step.words for step in steps}.items())
    is_log = places[0][0] > 0 and places[-1][0] / places[0][0] >= 4
    data = [{**_axis.row(step), "at": step.at} for step in steps]
    title = _axis.title_of(metric, unit, better)
    words = dict(places)
    labels = "".join(f"datum.value == {at!r} ? '{text}' : " for at, text in words.items()) + "''"
    scale = {"type": "log", "base": 2, "nice": False} if is_log else {"zero": False, "nice": False}
    ticks = {"values": list(words), "labelExpr": labels, "grid": False}
    x = _axis.quantity("at", parameter, scale=scale, axis=ticks)
    y = _axis.quantity("median", title, axis=_axis.value_axis(unit), scale={"zero": True})
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
        title=f"{name}: {metric.replace('_', ' ')} by {parameter}",
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
    key: str,
    name: str,
    parameters: tuple[str, str],
    metric: str,
    unit: Unit,
    better: Direction,
    fields: Sequence[Field],
    labels: Sequence[str],
) -> Figure:
    """Return the figure: a panel per stack, one colour scale for all panels, the median as text in each field.

    ``labels``: labels of the panels, in order.
    """
    across = [words for _, words in sorted({(field.x, field.x_words) for field in fields})]
    up = [words for _, words in sorted({(field.y, field.y_words) for field in fields}, reverse=True)]
    data = _data(fields, unit)
    title = _axis.title_of(metric, unit, better)
    x = _side("x", across, parameters[0])
    y = _side("y", up, parameters[1])
    medians = [field.median for field in fields]
    middle = (
        min(medians) + max(medians)
    ) / 2  # of the colours: fields above it have dark text, those below it light
    panel = {
        "width": _axis.WIDTH,
        "height": 26 * len(up),
        "encoding": {"x": x, "y": y},
        "layer": _surface_layers(title, unit, middle),
    }
    spec = _axis.base(
        f"{name}: {title} by {parameters[0]} and {parameters[1]}",
        data={"values": data}, facet=_axis.panels(labels), spacing=14, spec=panel,
    )  # fmt: skip
    return Figure(
        id=key,
        title=f"{name}: {metric.replace('_', ' ')} by {parameters[0]} and {parameters[1]}",
        spec=spec,
        caption="Medians; all panels share one scale of colours.",
        alt=f"{title} of {name} over {parameters[0]} ({across[0]} to {across[-1]}) and {parameters[1]} ({up[-1]} to "
        f"{up[0]}), a panel for each of {', '.join(labels)}.",
        marks={"field": len(data), "figure": len(data)},
    )


def _data(fields: Sequence[Field], unit: Unit) -> list[dict[str, Any]]:
    return [
        {
            "stack": field.stack,
            "x": field.x_words,
            "y": field.y_words,
            "median": _axis.rounded(field.median),
            "text": format_value(field.median, unit).split(" ")[0] + _prefix(field.median, unit),
        }
        for field in fields
    ]


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
