"""Decides which cells are measured in slices: the tools of all stacks of a workload take turns. Pure.

Trials that follow each other do not share the noise that comes and goes within seconds; slices of some milliseconds do.
"""

from collections.abc import Sequence
from pathlib import Path

from fslab import workloads
from fslab.cell import Cell, by_workload
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.tuning import OF_DEVICES
from fslab.storage import images
from fslab.storage.parsed_stack import parsed_stack
from fslab.units import parse_duration
from fslab.workloads import Traits

AUTO, OFF = "auto", "off"
# Freezing takes 0.5 to 10 ms, of which every slice has one; a disk that is not in memory answers late, and a disk arm
# goes to the other image first. What differs from one wake-up to the next (which CPU serves the requests) is drawn anew
# in each slice, so that many short ones tell more than few long ones.
SLICE_S = 0.05
MEMORY_SLICE_S = 0.02
# A workload that leaves dirty pages or an open transaction behind has longer slices, so that more of what it left is
# written back in its own.
LEAVING_FACTOR = 2.5
# What a stack does within fewer slices is measured whole: a start, a freeze and the moment at which a tool looks at
# its clock would decide its figure.
LEAST_SLICES = 8
# The disk of a model is halted together with its tool, so that nothing is left to the slices of others.
SEEKS = 20
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
        cell.id: asked_s or _length_s(cell)
        for group in by_workload(cells)
        if len(group) > 1 and why_whole(group) is None
        for cell in group
    }
    return tuple(
        cell.model_copy(update={"slice_s": lengths[cell.id]}) if cell.id in lengths else cell
        for cell in cells
    )


def why_whole(group: Sequence[Cell]) -> str | None:
    """Return why the trials of these cells, which have one workload, cannot run at the same time, in slices. None if
    they can."""
    if len(group) > MOST_AT_ONCE:
        return f"{len(group)} stacks, of which at most {MOST_AT_ONCE} can take turns"
    machine = [{name: cell.tuned[name] for name in cell.tuned.keys() - OF_DEVICES} for cell in group]
    if any(each != machine[0] for each in machine):
        return "its stacks have different settings of the machine ('tuning')"
    return next((why for cell in group if (why := _why_whole(cell)) is not None), None)


def _why_whole(cell: Cell) -> str | None:
    """Return why a cell has no disks of its own on this machine, or no tool that can be frozen."""
    stack, place = parsed_stack(cell.stack), f"'{cell.stack.name}'"
    if MACHINES.get(cell.stack.machine.type).guest:
        return f"{place} runs in a guest"
    if cell.stack.machine.limits_tool:
        return f"the memory of {place} is limited"
    if not stack.medium.image:
        return f"{place} and the other stacks use one '{cell.stack.medium.type}' medium, one after the other"
    if cell.fresh.lasts:
        return f"its file systems last (fresh: {cell.fresh.value})"
    return workloads.parsed(cell.workload).why_whole()


def leaves_work(traits: Traits) -> bool:
    """Return whether a workload leaves dirty pages or an open transaction behind when it is frozen; if unknown, it
    does."""
    return traits.writes is not False and not traits.direct and not (traits.syncs_per_write or 0) >= 1


def _length_s(cell: Cell) -> float:
    stack = parsed_stack(cell.stack)
    if stack.medium.profile(stack.medium_options) is not None:
        return max(SLICE_S, SEEKS * stack.medium.seek_s(stack.medium_options))
    in_memory = {*stack.medium_plan(Path()).space} == {images.MEMORY}
    factor = LEAVING_FACTOR if leaves_work(workloads.parsed(cell.workload).traits()) else 1
    return factor * (MEMORY_SLICE_S if in_memory else SLICE_S)
