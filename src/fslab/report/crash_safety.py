"""Speed and safety: what each stack lost after power cuts, and its rates in the other workloads. Pure.

A workload cuts power if it has the metric ``promises_broken``, whatever its tool is. A stack is safe only if no trial
broke a promise: a median would hide what one power cut in three takes. A stack on which fsync does not flush the disk's
cache is not safe either, beside one on which it does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fslab.report.figures import Figure, slug, styles
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Report, Row
from fslab.stats.median import MEDIAN_CI
from fslab.trial_record import Severity
from fslab.units import RATES, Direction, listed

BROKEN = "promises_broken"
LOST = "lost_operations"
UNFLUSHED = "sync_not_flushed"


@dataclass(frozen=True, kw_only=True, slots=True)
class StackLosses:
    """What one workload that cuts power took from one stack.

    ``broken``: broken promises, in the worst trial. ``lost``: lost operations that no promise covers, in the median;
    ``most_lost``: in the worst trial.
    """

    broken: float
    lost: float = 0.0
    most_lost: float = 0.0


def losses(report: Report) -> dict[str, dict[str, StackLosses]]:
    """Return workload → label of a stack → losses. Where all operations are promised, only ``broken`` is counted."""
    lost_of = {row.workload: row for row in report.rows if row.metric == LOST}
    return {
        row.workload: dict(_of_workload(report, row, lost_of.get(row.workload)))
        for row in report.rows
        if row.metric == BROKEN
    }


def _of_workload(report: Report, broken: Row, lost: Row | None) -> Iterator[tuple[str, StackLosses]]:
    others = {each.stack: each for each in lost.summaries if each.values} if lost else {}
    for each in broken.summaries:
        if each.values:
            other = others.get(each.stack)
            yield report.labels[each.stack], StackLosses(
                broken=max(each.values), lost=(other and other.median) or 0.0,
                most_lost=max(other.values) if other else 0.0,
            )  # fmt: skip


def verdict(report: Report) -> str | None:
    """Return what power cuts broke, and what else they took, each in the worst trial. None: no workload cuts power.

    ``Power cuts broke promises on ext4 barrier=0 (up to 69), and none on ext4. Operations lost that were not promised:
    up to 51 on ext4 and 59 on btrfs (power-cuts).``
    """
    found = losses(report)
    broken: dict[str, float] = {}
    for stacks in found.values():
        for stack, what in stacks.items():
            broken[stack] = max(what.broken, broken.get(stack, 0.0))
    if not broken:
        return None
    kept = listed([stack for stack, count in broken.items() if not count])
    unsafe = listed([f"{stack} (up to {count:g})" for stack, count in broken.items() if count])
    told = (
        f"promises on {unsafe}{f', and none on {kept}' if kept else ''}"
        if unsafe
        else f"no promise on {kept}"
    )
    not_promised = [
        f"up to {listed(lost)} ({workload})"
        for workload, stacks in found.items()
        if (lost := [f"{what.most_lost:g} on {stack}" for stack, what in stacks.items() if what.most_lost])
    ]
    more = f" Operations lost that were not promised: {'; '.join(not_promised)}." if not_promised else ""
    return f"Power cuts broke {told}.{more}"


def unflushed(report: Report) -> dict[str, list[str]]:
    """Return the labels of the stacks on which fsync did not flush the disk's cache, each with the workloads.

    Not where it is so on all stacks: then it is no difference between them.
    """
    found: dict[str, list[str]] = {}
    for note in report.notes:
        if note.kind == UNFLUSHED and note.severity == Severity.WARNING:
            for place in note.places:
                found.setdefault(place.stack, []).append(place.workload)
    measured = {
        (row.workload, report.labels[each.stack])
        for row in report.rows
        for each in row.summaries
        if each.values
    }
    flushed = {workload for workload, stack in measured if workload not in found.get(stack, ())}
    kept = {
        stack: [workload for workload in workloads if workload in flushed]
        for stack, workloads in found.items()
    }
    return {stack: workloads for stack, workloads in kept.items() if workloads}


def unsafe_stacks(report: Report) -> frozenset[str]:
    """Return the labels of the stacks that broke promises after power cuts, or of which fsync flushes no cache."""
    found = (stack for each in losses(report).values() for stack, what in each.items() if what.broken)
    return frozenset(found) | unflushed(report).keys()


def speeds(report: Report) -> tuple[Row, ...]:
    """Return the row of the first rate of each workload."""
    found: dict[str, Row] = {}
    for row in report.rows:
        if row.better is Direction.HIGHER and row.unit in RATES:
            found.setdefault(row.workload, row)
    return tuple(found.values())


def unsafe_leaders(report: Report) -> Iterator[tuple[str, Sequence[str], str]]:
    """Yield each stack that leads in a rate and is not safe: its label, the workloads in which it leads, and why."""
    leads: dict[str, list[str]] = {}
    for row in speeds(report):
        if row.leader is not None and len([each for each in row.summaries if each.values]) > 1:
            leads.setdefault(row.leader, []).append(row.workload)
    for workload, stacks in losses(report).items():
        for stack, what in stacks.items():
            if what.broken and stack in leads:
                promises = f"{what.broken:g} promise{'s' * (what.broken != 1)}"
                yield stack, leads[stack], f"broke up to {promises} after power cuts ({workload})"
    for stack, workloads in unflushed(report).items():
        if stack in leads:
            yield stack, leads[stack], f"fsync does not flush the disk's cache there ({listed(workloads)})"


def tradeoffs(report: Report, prefix: str) -> Iterator[Figure]:
    """Yield a figure for each pair of a workload that cuts power and one with a rate. ``prefix`` keeps ids unique."""
    looks = StackStyles.of(report.stacks)
    for number, (cuts, stacks) in enumerate(losses(report).items()):
        for row in speeds(report):
            points = list(_points(row, stacks, report))
            if len(points) > 1:
                yield _figure(f"{prefix}safety-{number}-{slug(row.workload)}", row, cuts, points, looks)


def _points(row: Row, stacks: Mapping[str, StackLosses], report: Report) -> Iterator[dict[str, Any]]:
    """Yield for each stack the median of its speed with its interval, and what it lost."""
    for each in row.summaries:
        label = report.labels[each.stack]
        if each.median is not None and label in stacks:
            what = stacks[label]
            yield {
                "stack": label, "speed": styles.rounded(each.median), **styles.ends(each.interval),
                "broken": what.broken, "lost": what.lost, "gone": what.broken + what.lost,
            }  # fmt: skip


def _figure(key: str, row: Row, cuts: str, data: list[dict[str, Any]], looks: StackStyles) -> Figure:
    """Return the figure. ``row``: the speed. ``cuts``: the workload that cuts power."""
    title = styles.title_of(row.metric, row.unit, row.better)
    axis, zero = styles.value_axis(row.unit), {"zero": True}
    x = styles.quantity("speed", f"{row.workload}: {title}", axis=axis, scale=zero)
    lost = f"{cuts}: operations lost after power cuts"
    present = looks.only([each["stack"] for each in data])
    colour = present.colour()
    filled = {"condition": {"test": "datum.broken > 0", "value": 1}, "value": 0}
    told = [
        {"field": "stack"},
        {"field": "speed", "title": title, "format": ".4~s"},
        {"field": "broken", "title": "promises broken"},
        {"field": "lost", "title": "lost without a promise"},
    ]
    point = {"type": "point", "size": 110, "strokeWidth": 2.5}
    broken = [each["stack"] for each in data if each["broken"]]
    return styles.figure(
        key,
        f"Speed against safety: {row.workload} and {cuts}",
        description=f"{row.workload} against {cuts}",
        height=260,
        encoding={"y": styles.quantity("gone", lost, scale=zero, axis={"tickMinStep": 1})},
        layer=[
            *styles.intervals(data, {"strokeWidth": 5, "opacity": 0.3}, "x", x, color=colour),
            styles.layer(
                "stack", point, data, x=x, stroke=colour, fill=colour, fillOpacity=filled,
                shape=present.shape(), tooltip=told,
            ),
        ],
        caption="Right: faster. Down: fewer operations that had returned were lost after a power cut. "
        f"Filled: some losses broke a promise. Lines: {MEDIAN_CI} of the speed.",
        alt=f"{title} of {row.workload} against losses by {cuts}, a point for each of {', '.join(present.labels)}; "
        f"promises were broken on {', '.join(broken) or 'none'}.",
        marks={"stack": len(data), "interval": sum(each["low"] is not None for each in data)},
    )  # fmt: skip
