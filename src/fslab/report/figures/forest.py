"""Ratios with their intervals on a log axis, one per line (a forest plot). A difference has an interval without 1."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis


@dataclass(frozen=True, kw_only=True, slots=True)
class ForestRatio:
    """One comparison. ``sure``: significant after Holm correction over all comparisons."""

    label: str
    ratio: float
    low: float
    high: float
    sure: bool


def figure(key: str, title: str, axis: str, ratios: Sequence[ForestRatio]) -> Figure:
    """Return the figure. ``axis``: title of the axis, with numerator and denominator."""
    data = [_axis.row(each) for each in ratios]
    axis_of_ratios = {"labelExpr": "format(datum.value, '.3~r') + ' ×'", "tickCount": 5, "labelOverlap": True}
    x = _axis.quantity("low", axis, scale={"type": "log"}, axis=axis_of_ratios)
    y = _axis.names("label", [each.label for each in ratios], 320)
    height = 22 * max(len(ratios), 1)
    spec = _axis.base(title, height=height, layer=_layers(data, x, y))
    return Figure(
        id=key,
        title=title,
        spec=spec,
        caption="Filled: significant after Holm correction; hollow: not significant.",
        alt=f"{title}: {len(ratios)} ratios with their intervals on a log axis.",
        marks={"ratio": len(data), "interval": len(data)},
    )


def _layers(data: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any]) -> list[dict[str, Any]]:
    one = {"type": "rule", "color": "var(--muted)", "strokeDash": [3, 3]}
    point = {"type": "point", "size": 60, "filled": True, "stroke": "var(--s1)", "fill": "var(--s1)"}

    def sure(otherwise: float) -> dict[str, Any]:
        return {"condition": {"test": "datum.sure", "value": 1}, "value": otherwise}

    return [
        _axis.layer("one", one, [{"x": 1}], x={"field": "x", "type": "quantitative"}),
        _axis.layer(
            "interval", {"type": "rule", "strokeWidth": 2.5, "color": "var(--s1)"}, data,
            y=y, x=x, x2={"field": "high"}, opacity=sure(0.5),
        ),
        _axis.layer(
            "ratio", point, data, y=y, x={**x, "field": "ratio"}, fillOpacity=sure(0),
            tooltip=_axis.tooltip(label="", ratio=".4~r", low=".4~r", high=".4~r"),
        ),
    ]  # fmt: skip
