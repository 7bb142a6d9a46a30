"""How axes of a unit look: labels with prefixes, scales, and what a page's switches turn. Shared by the figures."""

import math
from typing import Any

from fslab.units import Direction, Unit

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
SWITCH = "fslab"
# On a log axis the lines of decades stand out, the others recede.
DECADES = {
    "condition": {
        "test": "abs(round(log(datum.value) / LN10) - log(datum.value) / LN10) < 0.001",
        "value": 0.9,
    },
    "value": 0.25,
}


def rounded(value: float | None) -> float | None:
    """Five significant digits: more than anybody sees in a figure, and a third of the bytes."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


def label_expression(unit: Unit) -> str:
    """A Vega expression that writes an axis label with its prefix; bytes also in powers of 1024 (``binary``)."""
    match unit:
        case Unit.NANOSECONDS:
            return _steps([(limit, f" {name}") for limit, name in _TIMES], " ns")
        case Unit.BYTES_PER_SECOND | Unit.BYTES:
            decimal = _steps([(limit, f" {name}{unit.value}") for limit, name in _PREFIXES], f" {unit.value}")
            binary = _steps([(limit, f" {name}{unit.value}") for limit, name in _BINARY], f" {unit.value}")
            return f"binary ? ({binary}) : ({decimal})"
        case Unit.SECONDS:
            return "format(datum.value, '.3~r') + ' s'"
        case Unit.PERCENT:
            return "format(datum.value, '.3~r') + ' %'"
        case _:
            return _steps([(limit, name) for limit, name in _PREFIXES], "")


def value_axis(unit: Unit, **more: Any) -> dict[str, Any]:
    return {"labelExpr": label_expression(unit), "tickCount": 5, "labelOverlap": True, **more}


def title_of(metric: str, unit: Unit, better: Direction) -> str:
    """``write iops``, ``create rate, files/s``, ``fsync mean (lower is better)``."""
    name = metric.replace("_", " ")
    if (
        unit in {Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND, Unit.IOPS}
        and unit.value.lower() not in name
    ):
        name += f", {unit.value}"
    return f"{name} (lower is better)" if better is Direction.LOWER else name


def switches(channel: str, title: str, unit: Unit) -> dict[str, Any]:
    """What a page needs to turn a figure from values to ratios and back: the channel, its titles and labels."""
    return {
        SWITCH: {
            "channel": channel,
            "absolute": {"title": title, "labelExpr": label_expression(unit)},
            "ratio": {
                "title": f"{title.partition(',')[0]}, ÷ the best median",
                "labelExpr": "format(datum.value, '.3~r') + ' ×'",
            },
        }
    }


def params() -> list[dict[str, Any]]:
    """What label expressions ask."""
    return [{"name": "binary", "value": False}]


def base(width: int = 640) -> dict[str, Any]:
    """What all specifications have in common; ``width`` is that of a file, a page takes what room it has."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "background": None,
        "params": params(),
        "config": _CONFIG,
    }


def _steps(limits: list[tuple[float, str]], rest: str) -> str:
    text = f"format(datum.value, '.3~r') + '{rest}'"
    for limit, suffix in reversed(limits):
        text = f"abs(datum.value) >= {limit:.0f} ? format(datum.value / {limit:.0f}, '.3~r') + '{suffix}' : {text}"
    return text


_TEXT = {"labelColor": "var(--muted)", "titleColor": "var(--ink)"}
_CONFIG: dict[str, Any] = {
    "font": "system-ui, 'DejaVu Sans', sans-serif",
    "view": {"stroke": None},
    "axis": {
        **_TEXT,
        "domain": False,
        "ticks": False,
        "gridColor": "var(--line)",
        "gridOpacity": 0.7,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelPadding": 6,
    },
    "legend": {
        **_TEXT,
        "labelColor": "var(--ink)",
        "orient": "top",
        "title": None,
        "labelFontSize": 12,
        "labelLimit": 320,
        "symbolStrokeWidth": 2,
        "columns": 4,
    },
    "header": {**_TEXT, "labelColor": "var(--ink)", "labelFontSize": 12, "title": None, "labelLimit": 280},
    "title": {"color": "var(--ink)", "anchor": "start", "fontSize": 13},
}
