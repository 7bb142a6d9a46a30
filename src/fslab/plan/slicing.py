"""Decides which cells are measured in slices: the tools of all stacks of a workload take turns. Pure.

Trials that follow each other do not share the noise that comes and goes within seconds; slices of some milliseconds do.
"""

from collections.abc import Sequence

from fslab import workloads
from fslab.cell import Cell, by_workload
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.storage.parsed_stack import parsed_stack
from fslab.units import parse_duration
from fslab.workloads import Traits

AUTO, OFF = "auto", "off"
# Freezing takes 0.5 to 10 ms, of which every slice has one.
SLICE_S = 0.05
# A workload that leaves dirty pages or an open transaction behind has longer slices, so that more of what it left is
# written back in its own.
LEAVING_SLICE_S = 0.2
# All stacks exist at the same time, and with many of them, the slices that are compared are far from each other.
MOST_AT_ONCE = 8


def with_slices(cells: Sequence[Cell], slices: str) -> tuple[Cell, ...]:
    """Return the cells, with the length of their slices where they can be measured in slices.

    ``slices``: as in a study: ``auto``, ``off``, or a length.
    """
    if slices == OFF:
        return tuple(cells)
    asked_s = None if slices == AUTO else parse_duration(slices)
    lengths = {
        cell.id: asked_s or _length_s(workloads.parsed(cell.workload).traits())
        for group in by_workload(cells)
        if can_take_turns(group)
        for cell in group
    }
    return tuple(
        cell.model_copy(update={"slice_s": lengths[cell.id]}) if cell.id in lengths else cell
        for cell in cells
    )


def can_take_turns(group: Sequence[Cell]) -> bool:
    """Return whether the trials of these cells, which have one workload, can run at the same time, in slices."""
    return 1 < len(group) <= MOST_AT_ONCE and all(map(_can, group))


def _can(cell: Cell) -> bool:
    """Return whether a cell has disks of its own, on this machine, and a tool that can be frozen.

    A virtual disk has its own clock, which makes it nearly free of the machine's noise.
    """
    stack = parsed_stack(cell.stack)
    return (
        not MACHINES.get(cell.stack.machine.type).guest
        and stack.medium.image
        and not stack.medium.profiles
        and not cell.fresh.lasts
        and workloads.parsed(cell.workload).takes_turns()
    )


def leaves_work(traits: Traits) -> bool:
    """Return whether a workload leaves dirty pages or an open transaction behind when it is frozen; if unknown, it
    does."""
    return traits.writes is not False and not traits.direct and not (traits.syncs_per_write or 0) >= 1


def _length_s(traits: Traits) -> float:
    return LEAVING_SLICE_S if leaves_work(traits) else SLICE_S
