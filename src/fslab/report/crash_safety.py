"""Speed and safety: what each stack lost after power cuts, and its rates in the other workloads. Pure.

A workload cuts power if it has the metric ``promises_broken``, whatever its tool is. A stack is safe only if no trial
broke a promise: a median would hide what one power cut in three takes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fslab.report.model import Report, Row
from fslab.units import Direction, Unit, listed

BROKEN = "promises_broken"
LOST = "lost_operations"
_RATES = frozenset({Unit.BYTES_PER_SECOND, Unit.IOPS, Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND})


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
    """Return workload → stack id → losses. Where all operations are promised, only ``broken`` is counted."""
    found = {}
    for row in report.rows:
        if row.metric == BROKEN:
            lost = next(
                (each for each in report.rows if (each.workload, each.metric) == (row.workload, LOST)), None
            )
            found[row.workload] = dict(_of_workload(row, lost))
    return found


def _of_workload(broken: Row, lost: Row | None) -> Iterator[tuple[str, StackLosses]]:
    others = {each.stack: each for each in lost.summaries if each.values} if lost else {}
    for each in broken.summaries:
        if each.values:
            other = others.get(each.stack)
            yield each.stack, StackLosses(
                broken=max(each.values), lost=(other and other.median) or 0.0,
                most_lost=max(other.values) if other else 0.0,
            )  # fmt: skip


def verdict(report: Report) -> str | None:
    """Return what power cuts broke, and what else they took, each in the worst trial. None: no workload cuts power.

    ``Power cuts broke promises on ext4 barrier=0 (up to 69), and none on ext4. Operations lost that were not promised:
    up to 7 on ext4 (power-cuts).``
    """
    labels = {stack.id: stack.label for stack in report.stacks}
    broken: dict[str, float] = {}
    for stacks in losses(report).values():
        for stack, what in stacks.items():
            broken[labels[stack]] = max(what.broken, broken.get(labels[stack], 0.0))
    if not broken:
        return None
    kept = listed([label for label, count in broken.items() if not count])
    unsafe = listed([f"{label} (up to {count:g})" for label, count in broken.items() if count])
    told = (
        f"promises on {unsafe}{f', and none on {kept}' if kept else ''}"
        if unsafe
        else f"no promise on {kept}"
    )
    return f"Power cuts broke {told}.{_not_promised(report, labels)}"


def _not_promised(report: Report, labels: Mapping[str, str]) -> str:
    """Return `` Operations lost that were not promised: up to 51 on ext4 and 59 on btrfs (power-cuts).``"""
    told = []
    for workload, stacks in losses(report).items():
        lost = [f"{what.most_lost:g} on {labels[stack]}" for stack, what in stacks.items() if what.most_lost]
        if lost:
            told.append(f"up to {listed(lost)} ({workload})")
    return f" Operations lost that were not promised: {'; '.join(told)}." if told else ""


def unsafe_stacks(report: Report) -> frozenset[str]:
    """Return the labels of the stacks that broke promises after power cuts."""
    labels = {stack.id: stack.label for stack in report.stacks}
    found = (labels[stack] for each in losses(report).values() for stack, what in each.items() if what.broken)
    return frozenset(found)


def speeds(report: Report) -> tuple[Row, ...]:
    """Return the row of the first rate of each workload."""
    found: dict[str, Row] = {}
    for row in report.rows:
        if row.better is Direction.HIGHER and row.unit in _RATES:
            found.setdefault(row.workload, row)
    return tuple(found.values())


def unsafe_leaders(report: Report) -> Iterator[tuple[str, Sequence[str], str, float]]:
    """Yield each stack that leads in a rate and broke promises.

    Its label, the workloads in which it leads, the workload that cuts power, and how many promises it broke there.
    """
    labels = {stack.id: stack.label for stack in report.stacks}
    leads: dict[str, list[str]] = {}
    for row in speeds(report):
        if row.leader is not None and len([each for each in row.summaries if each.values]) > 1:
            leads.setdefault(row.leader, []).append(row.workload)
    for workload, stacks in losses(report).items():
        for stack, what in stacks.items():
            if what.broken and labels[stack] in leads:
                yield labels[stack], leads[labels[stack]], workload, what.broken
