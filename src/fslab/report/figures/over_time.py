"""Figures over time: all trials in the order in which they ran, and the rate during a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, styles
from fslab.report.figures.styles import StackStyles
from fslab.units import Unit


@dataclass(frozen=True, kw_only=True, slots=True)
class RateSeries:
    """The rate over time of one trial of a stack (its label), one value per interval."""

    stack: str
    trial: int
    interval_s: float
    values: tuple[float, ...]

    @property
    def is_line(self) -> bool:
        """Whether there are at least two values, so that a line can be drawn."""
        return len(self.values) > 1


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


def order_figure(key: str, moments: Sequence[OrderPoint], looks: StackStyles) -> Figure:
    """Return the figure of a whole campaign."""
    present = looks.only([moment.stack for moment in moments])
    data = [
        {
            "stack": moment.stack,
            "workload": moment.workload,
            "minutes": round(moment.minutes, 3),
            "ratio": styles.rounded(moment.ratio),
            **dict.fromkeys(("kind", "validity"), "usable" if moment.usable else "invalid"),
        }
        for moment in moments
    ]
    grouped = any(moment.trials > 1 for moment in moments)
    level = {"type": "rule", "color": "var(--muted)"}
    point = {"type": "point", "filled": True, "size": 34, "opacity": 0.75}
    layers = [
        styles.layer("level", level, [{"ratio": 1}], y={"field": "ratio", "type": "quantitative"}),
        styles.layer("trial", point, data, **_order_encoding(present)),
    ]
    what = "Each point stands for several trials" if grouped else "Each point is a trial"
    return styles.figure(
        key,
        "Trials in the order in which they ran",
        description="All trials in the order in which they ran",
        height=220,
        layer=layers,
        caption=f"{what}. A slope or a step that all stacks share comes from the machine, not from them.",
        alt="All trials over time, each as its distance from the median of its cell.",
        marks={"trial": len(data)},
    )


def _order_encoding(present: StackStyles) -> dict[str, Any]:
    percent = "format(100 * (datum.value - 1), '+.3~r') + ' %'"
    shapes = {"domain": ["usable", "invalid"], "range": ["circle", "cross"]}
    return {
        "x": styles.quantity("minutes", "minutes since the first trial", axis={"grid": False}),
        "y": styles.quantity(
            "ratio",
            "difference from the median of the cell",
            scale={"zero": False},
            axis={"labelExpr": percent, "tickCount": 5},
        ),
        "color": present.colour(),
        "shape": styles.name("kind", legend=None, scale=shapes),
        "tooltip": styles.tooltip(workload="", stack="", ratio=".4~r", validity=""),
    }


def rate_figure(
    key: str, workload: str, what: str, unit: Unit, courses: Sequence[RateSeries], looks: StackStyles
) -> Figure:
    """Return the figure (small multiples): a panel per stack, a line per trial, all on one scale."""
    present = looks.only([course.stack for course in courses])
    data = [
        {
            "stack": course.stack,
            "trial": course.trial + 1,
            "s": round((step + 0.5) * course.interval_s, 3),
            "rate": styles.rounded(value),
        }
        for course in courses
        for step, value in enumerate(course.values)
    ]
    panel = {
        "name": "course", "width": styles.WIDTH, "height": 84, "encoding": _rate_encoding(what, unit, present),
        "mark": {"type": "line", "strokeWidth": 1.3, "opacity": 0.75, "interpolate": "step"},
    }  # fmt: skip
    return styles.figure(
        key,
        f"{workload}: {what} over time",
        data={"values": data},
        facet=styles.panels(present.labels),
        spacing=14,
        spec=panel,
        caption="A line per trial, all panels on one scale.",
        alt=f"{what} of {workload} over the time of the run, a panel for each of {', '.join(present.labels)}.",
        marks={"course": len(courses)},
    )


def _rate_encoding(what: str, unit: Unit, present: StackStyles) -> dict[str, Any]:
    return {
        "x": styles.quantity("s", "time in the run, s", axis={"grid": False}),
        "y": styles.quantity("rate", what, axis=styles.value_axis(unit, tickCount=3)),
        "detail": styles.name("trial"),
        "color": {**present.colour(), "legend": None},
    }
