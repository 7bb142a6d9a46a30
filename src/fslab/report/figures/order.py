"""All trials in the order in which they ran, each relative to the median of its cell. Drift is visible as a slope."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis
from fslab.report.figures.styles import StackStyles


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderPoint:
    """A trial. ``minutes``: from the start of the first trial. ``ratio``: headline metric ÷ median of the cell.

    In a campaign with very many trials, each point stands for several (``trials``).
    """

    stack: str
    workload: str
    minutes: float
    ratio: float
    usable: bool
    trials: int = 1


def figure(key: str, moments: Sequence[OrderPoint], looks: StackStyles) -> Figure:
    """Return the figure of a whole campaign."""
    present = looks.only([moment.stack for moment in moments])
    data = [
        {
            "stack": moment.stack,
            "workload": moment.workload,
            "minutes": round(moment.minutes, 3),
            "ratio": _axis.rounded(moment.ratio),
            "kind": "usable" if moment.usable else "invalid",
            "validity": "usable" if moment.usable else "invalid",
        }
        for moment in moments
    ]
    grouped = any(moment.trials > 1 for moment in moments)
    level = {"type": "rule", "color": "var(--muted)"}
    point = {"type": "point", "filled": True, "size": 34, "opacity": 0.75}
    layers = [
        _axis.layer("level", level, [{"ratio": 1}], y={"field": "ratio", "type": "quantitative"}),
        _axis.layer("trial", point, data, **_encoding(present)),
    ]
    spec = _axis.base("All trials in the order in which they ran", height=220, layer=layers)
    what = "Each point stands for several trials" if grouped else "Each point is a trial"
    return Figure(
        id=key,
        title="Trials in the order in which they ran",
        spec=spec,
        caption=f"{what}. A slope or a step that all stacks share comes from the machine, not from them.",
        alt="All trials over time, each as its distance from the median of its cell.",
        marks={"trial": len(data)},
    )


def _encoding(present: StackStyles) -> dict[str, Any]:
    percent = "format(100 * (datum.value - 1), '+.3~r') + ' %'"
    shapes = {"domain": ["usable", "invalid"], "range": ["circle", "cross"]}
    return {
        "x": _axis.quantity("minutes", "minutes since the first trial", axis={"grid": False}),
        "y": _axis.quantity(
            "ratio", "difference from the median of the cell",
            scale={"zero": False}, axis={"labelExpr": percent, "tickCount": 5},
        ),
        "color": present.colour(),
        "shape": _axis.name("kind", legend=None, scale=shapes),
        "tooltip": _axis.tooltip(workload="", stack="", ratio=".4~r", validity=""),
    }  # fmt: skip
