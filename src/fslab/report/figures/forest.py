"""Ratios with their intervals on a log axis, one line each (a forest plot): what differs lies clear of 1."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis


@dataclass(frozen=True, kw_only=True, slots=True)
class ForestRatio:
    """One comparison. ``sure``: it differs, among all of them together."""

    label: str
    ratio: float
    low: float
    high: float
    sure: bool


def figure(key: str, title: str, axis: str, ratios: Sequence[ForestRatio]) -> Figure:
    """``axis``: what is divided by what."""
    data = [
        {
            "label": each.label,
            "ratio": _axis.rounded(each.ratio),
            "low": _axis.rounded(each.low),
            "high": _axis.rounded(each.high),
            "sure": each.sure,
        }
        for each in ratios
    ]
    x = {
        "field": "low",
        "type": "quantitative",
        "title": axis,
        "scale": {"type": "log"},
        "axis": {"labelExpr": "format(datum.value, '.3~r') + ' ×'", "tickCount": 5, "labelOverlap": True},
    }
    y = {
        "field": "label",
        "type": "nominal",
        "sort": [each.label for each in ratios],
        "title": None,
        "axis": {"grid": False, "labelLimit": 320},
    }
    spec = {
        **_axis.base(),
        "height": 22 * max(len(ratios), 1),
        "description": title,
        "usermeta": {},
        "layer": _layers(data, x, y),
    }
    return Figure(
        id=key,
        title=title,
        spec=spec,
        caption="Filled: differs even among all of these together (Holm); hollow: not shown to.",
        alt=f"{title}: {len(ratios)} ratios with their intervals on a log axis.",
        marks={"ratio": len(data), "interval": len(data)},
    )


def _layers(data: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": "one",
            "data": {"values": [{"x": 1}]},
            "mark": {"type": "rule", "color": "var(--muted)", "strokeDash": [3, 3]},
            "encoding": {"x": {"field": "x", "type": "quantitative"}},
        },
        {
            "name": "interval",
            "data": {"values": data},
            "mark": {"type": "rule", "strokeWidth": 2.5, "color": "var(--s1)"},
            "encoding": {
                "y": y,
                "x": x,
                "x2": {"field": "high"},
                "opacity": {"condition": {"test": "datum.sure", "value": 1}, "value": 0.5},
            },
        },
        {
            "name": "ratio",
            "data": {"values": data},
            "mark": {
                "type": "point",
                "size": 60,
                "filled": True,
                "stroke": "var(--s1)",
                "fill": "var(--s1)",
            },
            "encoding": {
                "y": y,
                "x": {**x, "field": "ratio"},
                "fillOpacity": {"condition": {"test": "datum.sure", "value": 1}, "value": 0},
                "tooltip": [
                    {"field": "label"},
                    {"field": "ratio", "format": ".4~r"},
                    {"field": "low", "format": ".4~r"},
                    {"field": "high", "format": ".4~r"},
                ],
            },
        },
    ]
