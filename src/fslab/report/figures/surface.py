"""A figure over two numeric parameters (file size × record size, disks × chunk): a grid of medians per stack."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis
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


def figure(
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
    panel = {
        "width": _axis.WIDTH, "height": 26 * len(up), "encoding": {"x": x, "y": y},
        "layer": _layers(title, unit, _middle([field.median for field in fields])),
    }  # fmt: skip
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


def _layers(title: str, unit: Unit, middle: float) -> list[dict[str, Any]]:
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


def _middle(values: Sequence[float]) -> float:
    """Return the middle of the colour scale. Fields above it have dark text, fields below it light text."""
    return (min(values) + max(values)) / 2


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
