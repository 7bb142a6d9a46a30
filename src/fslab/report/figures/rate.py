"""The rate over the time of a run. It shows whether the rate was steady, dropped sharply, or stalled."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, _axis
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


def figure(
    key: str, workload: str, what: str, unit: Unit, courses: Sequence[RateSeries], looks: StackStyles
) -> Figure:
    """Return the figure (small multiples): a panel per stack, a line per trial, all on one scale."""
    present = looks.only([course.stack for course in courses])
    data = [
        {
            "stack": course.stack,
            "trial": course.trial + 1,
            "s": round((step + 0.5) * course.interval_s, 3),
            "rate": _axis.rounded(value),
        }
        for course in courses
        for step, value in enumerate(course.values)
    ]
    panel = {
        "name": "course", "width": _axis.WIDTH, "height": 84, "encoding": _encoding(what, unit, present),
        "mark": {"type": "line", "strokeWidth": 1.3, "opacity": 0.75, "interpolate": "step"},
    }  # fmt: skip
    spec = _axis.base(
        f"{workload}: {what} over time",
        data={"values": data}, facet=_axis.panels(present.labels), spacing=14, spec=panel,
    )  # fmt: skip
    return Figure(
        id=key,
        title=f"{workload}: {what} over time",
        spec=spec,
        caption="A line per trial, all panels on one scale.",
        alt=f"{what} of {workload} over the time of the run, a panel for each of {', '.join(present.labels)}.",
        marks={"course": len(courses)},
    )


def _encoding(what: str, unit: Unit, present: StackStyles) -> dict[str, Any]:
    return {
        "x": _axis.quantity("s", "time in the run, s", axis={"grid": False}),
        "y": _axis.quantity("rate", what, axis=_axis.value_axis(unit, tickCount=3)),
        "detail": _axis.name("trial"),
        "color": {**present.colour(), "legend": None},
    }
