"""Speed against safety, for campaigns that measure both: what power cuts lose, beside a rate."""

from collections.abc import Iterator, Mapping
from typing import Any

from fslab.report import crash_safety
from fslab.report.figures import Figure, _axis, slug
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Report, Row


def _figure(key: str, row: Row, cuts: str, data: list[dict[str, Any]], looks: StackStyles) -> Figure:
    """Return the figure. ``row``: the speed. ``cuts``: the workload that cuts power."""
    title = _axis.title_of(row.metric, row.unit, row.better)
    x = _axis.quantity(
        "speed",
        f"{row.workload}: {title}",
        axis=_axis.value_axis(row.unit),
        scale={"zero": True},
    )
    y = _axis.quantity(
        "gone", f"{cuts}: operations lost after power cuts", scale={"zero": True}, axis={"tickMinStep": 1}
    )
    present = looks.only([each["stack"] for each in data])
    spec = _axis.base(
        f"{row.workload} against {cuts}",
        height=260,
        encoding={"y": y},
        layer=_layers(data, x, title, present),
    )
    broken = [each["stack"] for each in data if each["broken"]]
    return Figure(
        id=key,
        title=f"Speed against safety: {row.workload} and {cuts}",
        spec=spec,
        caption="Right: faster. Down: fewer operations that had returned were lost after a power cut. "
        "Filled: some losses broke a promise.",
        alt=f"{title} of {row.workload} against losses by {cuts}, a point for each of {', '.join(present.labels)}; "
        f"promises were broken on {', '.join(broken) or 'none'}.",
        marks={"stack": len(data), "interval": sum(each["low"] is not None for each in data)},
    )


def _layers(
    data: list[dict[str, Any]], x: dict[str, Any], title: str, present: StackStyles
) -> list[dict[str, Any]]:
    intervals = [each for each in data if each["low"] is not None]
    colour = present.colour()
    filled = {"condition": {"test": "datum.broken > 0", "value": 1}, "value": 0}
    told = [
        {"field": "stack"},
        {"field": "speed", "title": title, "format": ".4~s"},
        {"field": "broken", "title": "promises broken"},
        {"field": "lost", "title": "lost without a promise"},
    ]
    point = {"type": "point", "size": 110, "strokeWidth": 2.5}
    return [
        *[
            _axis.layer(
                "interval", {"type": "rule", "strokeWidth": 5, "opacity": 0.3}, intervals,
                x={**x, "field": "low"}, x2={"field": "high"}, color=colour,
            )
        ] * bool(intervals),
        _axis.layer(
            "stack", point, data, x=x, stroke=colour, fill=colour, fillOpacity=filled, shape=present.shape(),
            tooltip=told,
        ),
    ]  # fmt: skip


def figures(report: Report, prefix: str) -> Iterator[Figure]:
    """Yield a figure for each pair of a workload that cuts power and one with a rate. ``prefix`` keeps ids unique."""
    looks = StackStyles.of(report.stacks)
    for number, (cuts, stacks) in enumerate(crash_safety.losses(report).items()):
        for row in crash_safety.speeds(report):
            points = list(_points(row, stacks, report))
            if len(points) > 1:
                yield _figure(f"{prefix}safety-{number}-{slug(row.workload)}", row, cuts, points, looks)


def _points(
    row: Row, stacks: Mapping[str, crash_safety.StackLosses], report: Report
) -> Iterator[dict[str, Any]]:
    """Yield for each stack the median of its speed with its interval, and what it lost."""
    labels = {stack.id: stack.label for stack in report.stacks}
    for each in row.summaries:
        if each.median is not None and each.stack in stacks:
            what, interval = stacks[each.stack], each.interval
            yield {
                "stack": labels[each.stack], "speed": _axis.rounded(each.median),
                "low": _axis.rounded(interval.low) if interval else None,
                "high": _axis.rounded(interval.high) if interval else None,
                "broken": what.broken, "lost": what.lost, "gone": what.broken + what.lost,
            }  # fmt: skip
