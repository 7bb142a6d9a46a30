"""Axes for each unit: labels with prefixes, scales, and what a page's switches change. Shared by the figures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from fslab.units import Direction, Unit, metric_text

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
SWITCH = "fslab"
WIDTH = 640
CHARACTER_PX, TOLD = 7, 12  # of a label; characters after what names share
# On a log axis, the grid lines of decades are stronger than the others.
_IS_DECADE = "abs(round(log(datum.value) / LN10) - log(datum.value) / LN10) < 0.001"
DECADES = {"condition": {"test": _IS_DECADE, "value": 0.9}, "value": 0.25}


def rounded(value: float | None) -> float | None:
    """Round to five significant digits, which exceeds a figure's resolution and takes a third of the bytes."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


def row(values: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as one row of a figure's data, its numbers rounded."""
    return {
        name: rounded(value) if isinstance(value, float) else value for name, value in asdict(values).items()
    }


def label_expression(unit: Unit) -> str:
    """Return a Vega expression for axis labels with prefixes; for bytes, powers of 1024 if ``binary`` is set."""
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
    """Return a title such as ``write iops``, ``create rate, files/s`` or ``fsync mean (lower is better)``."""
    name = metric_text(metric)
    if (
        unit in {Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND, Unit.IOPS}
        and unit.value.lower() not in name
    ):
        name += f", {unit.value}"
    return f"{name} (lower is better)" if better is Direction.LOWER else name


def switches(channel: str, title: str, unit: Unit, better: Direction) -> dict[str, Any]:
    """Return what a page needs to switch between values and ratios: the channel, its titles and labels."""
    best = "largest" if better is Direction.NEITHER else "best"
    return {
        SWITCH: {
            "channel": channel,
            "absolute": {"title": title, "labelExpr": label_expression(unit)},
            "ratio": {
                "title": f"{title.partition(',')[0]}, ÷ the {best} median",
                "labelExpr": "format(datum.value, '.3~r') + ' ×'",
            },
        }
    }


def base(description: str, **more: Any) -> dict[str, Any]:
    """Return the common part of all specifications. The width is for files; a page sets it to the available width."""
    size = {} if "spec" in more else {"width": WIDTH}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json", "background": None, "config": _CONFIG,
        "params": [{"name": "binary", "value": False}],  # read by the label expressions
        "description": description, "usermeta": {}, **size, **more,
    }  # fmt: skip


def quantity(field: str, title: str | None, **more: Any) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "title": title, **more}


def name(field: str, **more: Any) -> dict[str, Any]:
    return {"field": field, "type": "nominal", **more}


def names(field: str, order: Sequence[str], widest: int, **more: Any) -> dict[str, Any]:
    """Return an axis of names in the given order. ``widest``: maximum width of a label, in pixels; more if names that
    differ later would be cut to the same text."""
    ordered = sorted(set(order))
    shared = max((_shared(*pair) for pair in pairwise(ordered)), default=0)
    axis = {"grid": False, "labelLimit": max(widest, CHARACTER_PX * (shared + TOLD)), **more}
    return name(field, sort=list(order), title=None, axis=axis)


def _shared(one: str, other: str) -> int:
    """Return how many characters two different names begin with in common."""
    differing = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))


def panels(stacks: Sequence[str]) -> dict[str, Any]:
    """Return a facet with one panel per stack, one below the other."""
    header = {"orient": "top", "labelAnchor": "start", "labelFontWeight": "bold"}
    return {"row": name("stack", sort=list(stacks), header=header)}


def layer(called: str, mark: Mapping[str, Any], values: object = None, **encoding: Any) -> dict[str, Any]:
    """Return a named layer, with its own data if ``values`` is given."""
    data = {} if values is None else {"data": {"values": values}}
    return {"name": called, **data, "mark": mark} | ({"encoding": encoding} if encoding else {})


def tooltip(**shown: str) -> list[dict[str, Any]]:
    """Return the fields of a tooltip. ``shown``: field → number format, empty for a name."""
    return [{"field": field, **({"format": form} if form else {})} for field, form in shown.items()]


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
    "title": {
        "color": "var(--ink)",
        "anchor": "start",
        "fontSize": 13,
        "subtitleColor": "var(--muted)",
        "subtitlePadding": 6,
    },
}
