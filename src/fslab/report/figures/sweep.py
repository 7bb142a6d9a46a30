"""A figure over one numeric parameter (threads, block size, file size, disks): a curve per stack."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis
from fslab.report.figures.styles import StackStyles
from fslab.units import Direction, Unit


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


def figure(
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
        height=260, usermeta={_axis.SWITCH: {"channel": "y"}},
        encoding={"x": x, "color": present.colour()}, layer=_layers(data, y, title, parameter, present),
    )  # fmt: skip
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


def _layers(
    data: list[dict[str, Any]], y: dict[str, Any], title: str, parameter: str, present: StackStyles
) -> list[dict[str, Any]]:
    intervals = [row for row in data if row["low"] is not None]
    rule = {"type": "rule", "strokeWidth": 5, "opacity": 0.3}
    told = [
        {"field": "stack"}, {"field": "words", "title": parameter},
        {"field": "median", "title": title, "format": ".4~s"},
    ]  # fmt: skip
    point = {"type": "point", "filled": True, "size": 50}
    return [
        *[_axis.layer("interval", rule, intervals, y={**y, "field": "low"}, y2={"field": "high"})]
        * bool(intervals),
        _axis.layer("curve", {"type": "line", "strokeWidth": 2}, data, y=y, strokeDash=present.dash()),
        _axis.layer("step", point, data, y=y, shape=present.shape(), tooltip=told),
    ]
