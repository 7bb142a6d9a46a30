"""What figures share: the colour, shape and dash of each stack; axes for each unit, and what a page's switches change.

The colour of a stack is that of its file system.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from fslab.report.figures import Figure
from fslab.report.model import StackColumn
from fslab.stats import Interval
from fslab.units import Direction, Unit, metric_text

# Hues after Okabe and Ito (2008), adjusted until each has a contrast of at least 3:1 with its page.
SERIES_LIGHT = ("#a63f88", "#0067a5", "#00795a", "#595959", "#c14a00", "#876a00", "#2b8bc4", "#7d1d4b")
SERIES_DARK = ("#e29bc4", "#61b5ec", "#35c79d", "#bdbdbd", "#f58a4b", "#dfba45", "#9bd5ff", "#e884ab")

LIGHT = {
    "paper": "#ffffff", "ink": "#1b1f24", "muted": "#5a6470", "line": "#d5dae0", "heat": "#86b9e6",
    "user": "#39434d", "system": "#7a8794", "irq": "#b3bdc7", "iowait": "#dde3e9", "steal": "#8a4b12",
}  # fmt: skip

DARK = {
    "paper": "#14171b", "ink": "#e6e9ed", "muted": "#a2abb6", "line": "#3a424c", "heat": "#1d5687",
    "user": "#dfe5eb", "system": "#9aa6b2", "irq": "#66727e", "iowait": "#3a444e", "steal": "#d59a58",
}  # fmt: skip

# Chosen so that the most common file systems have different hashed slots.
_SALT = "132"
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "arrow")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])


@dataclass(frozen=True, kw_only=True, slots=True)
class StackStyles:
    """Style of each stack, in the order of the plan.

    ``slot`` gives the colour, ``variant`` the shape and the dash.
    """

    labels: tuple[str, ...]
    slot: tuple[int, ...]
    variant: tuple[int, ...]

    @classmethod
    def of(cls, stacks: Sequence[StackColumn]) -> StackStyles:
        """Return the styles. Stacks of one file system share its colour and differ in shape and dash."""
        names = [stack.filesystem or stack.name for stack in stacks]
        slot_of = slots(names)
        variants = [names[:position].count(name) for position, name in enumerate(names)]
        # With more than eight file systems, colours repeat: then the shape must distinguish them.
        shared = [[*slot_of].index(name) // 8 for name in names]
        return cls(
            labels=tuple(stack.label for stack in stacks),
            slot=tuple(slot_of[name] for name in names),
            variant=tuple(a + b for a, b in zip(variants, shared, strict=True)),
        )

    def colour(self) -> dict[str, Any]:
        return self._channel([colour(f"s{slot}") for slot in self.slot])

    def shape(self) -> dict[str, Any]:
        """Return the shape channel; all shapes differ if there are few, so that not only colours distinguish."""
        few = len(self.labels) <= len(SHAPES)
        variants = range(len(self.labels)) if few else self.variant
        return self._channel([SHAPES[variant % len(SHAPES)] for variant in variants])

    def dash(self) -> dict[str, Any]:
        """Return the dash channel. It distinguishes the lines of stacks of one colour."""
        return self._channel([DASHES[variant % len(DASHES)] for variant in self.variant])

    def _channel(self, values: Sequence[Any]) -> dict[str, Any]:
        scale = {"domain": list(self.labels), "range": list(values)}
        return {"field": "stack", "type": "nominal", "scale": scale}

    def only(self, labels: Sequence[str]) -> StackStyles:
        """Return the styles of the given stacks only."""
        kept = [position for position, label in enumerate(self.labels) if label in labels]
        return StackStyles(
            labels=tuple(self.labels[position] for position in kept),
            slot=tuple(self.slot[position] for position in kept),
            variant=tuple(self.variant[position] for position in kept),
        )


def variables(*, dark: bool) -> dict[str, str]:
    """Return CSS variable (name without dashes) → colour."""
    series = SERIES_DARK if dark else SERIES_LIGHT
    return {**(DARK if dark else LIGHT), **{f"s{slot}": colour for slot, colour in enumerate(series)}}


def colour(name: str) -> str:
    return f"var(--{name})"


def slots(filesystems: Iterable[str]) -> Mapping[str, int]:
    """Return file system → slot: the slot of its hash if that is free, otherwise the next free one.

    With more than eight file systems, some share a slot; their shapes distinguish them.
    """
    taken: dict[str, int] = {}
    for name in sorted(set(filesystems)):
        digest = hashlib.blake2b(f"{_SALT}{name}".encode(), digest_size=4).digest()
        wanted = digest[0] % len(SERIES_LIGHT)
        order = [(wanted + step) % len(SERIES_LIGHT) for step in range(len(SERIES_LIGHT))]
        taken[name] = next((slot for slot in order if slot not in taken.values()), wanted)
    return taken


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
    """Return a title such as ``write IOPS``, ``create rate, files/s`` or ``fsync mean (lower is better)``."""
    name = metric_text(metric)
    if (
        unit in {Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND, Unit.IOPS}
        and unit.value.lower() not in metric
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


def figure(
    key: str,
    title: str,
    *,
    caption: str,
    alt: str,
    marks: Mapping[str, int],
    description: str = "",
    **more: Any,
) -> Figure:
    """Return a figure. ``more``: its specification, without what all of them have in common.

    The width is for files; a page sets it to the available width.
    """
    size = {} if "spec" in more else {"width": WIDTH}
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json", "background": None, "config": _CONFIG,
        "params": [{"name": "binary", "value": False}],  # read by the label expressions
        "description": description or title, "usermeta": {}, **size, **_plain_titles(more),
    }  # fmt: skip
    return Figure(id=key, title=title, caption=caption, alt=alt, spec=spec, marks=marks)


def _plain_titles(part: Any) -> Any:
    """Return a part of a specification with titles on one line and without backslashes: names are from the store, and
    Vega-Lite makes expressions of titles, in which it escapes only quotes."""
    match part:
        case dict():
            return {
                key: " ".join(each.split()).replace("\\", "/")
                if key == "title" and isinstance(each, str)
                else each
                if key == "values"
                else _plain_titles(each)
                for key, each in part.items()
            }
        case list():
            return [_plain_titles(each) for each in part]
    return part


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


def ends(interval: Interval | None) -> dict[str, float | None]:
    """Return the ends of an interval as fields of a figure's data, for ``intervals``."""
    found = (interval.low, interval.high) if interval else (None, None)
    return dict(zip(("low", "high"), map(rounded, found), strict=True))


def intervals(
    data: Sequence[dict[str, Any]],
    looks: Mapping[str, Any],
    channel: str,
    axis: Mapping[str, Any],
    **encoding: Any,
) -> list[dict[str, Any]]:
    """Return the layer of those of the rows that have an interval, along the ``x`` or ``y`` axis; none if none has."""
    known = [each for each in data if each["low"] is not None]
    along = {channel: {**axis, "field": "low"}, f"{channel}2": {"field": "high"}}
    return [layer("interval", {"type": "rule", **looks}, known, **along, **encoding)] if known else []


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
