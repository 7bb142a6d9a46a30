"""Figures of speed against safety, for campaigns that measure both. Pure."""

from collections.abc import Iterator, Mapping

from fslab.report import safety
from fslab.report.figures import Figure, slug
from fslab.report.figures.safety import SafetyPoint
from fslab.report.figures.safety import figure as safety_figure
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Report, Row


def figures(report: Report, prefix: str) -> Iterator[Figure]:
    """Yield a figure for each pair of a workload that cuts power and one with a rate. ``prefix`` keeps ids unique."""
    looks = StackStyles.of(report.stacks)
    for number, (cuts, stacks) in enumerate(safety.losses(report).items()):
        for row in safety.speeds(report):
            points = list(_points(row, stacks, report))
            if len(points) > 1:
                yield safety_figure(f"{prefix}safety-{number}-{slug(row.workload)}", row, cuts, points, looks)


def _points(row: Row, stacks: Mapping[str, safety.StackLosses], report: Report) -> Iterator[SafetyPoint]:
    labels = {stack.id: stack.label for stack in report.stacks}
    for each in row.summaries:
        if each.median is not None and each.stack in stacks:
            what, interval = stacks[each.stack], each.interval
            yield SafetyPoint(
                stack=labels[each.stack], speed=each.median, low=interval.low if interval else None,
                high=interval.high if interval else None, broken=what.broken, lost=what.lost,
            )  # fmt: skip
