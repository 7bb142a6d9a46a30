"""A study's cells: every stack with every workload that runs on it, in slices or not, and their order. Pure.

In slices, the tools of all stacks of a workload take turns. Trials that follow each other do not share the noise that
comes and goes within seconds; slices of some milliseconds do.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from fslab import workloads
from fslab.cell import Cell, StackSpec, WorkloadSpec, by_workload
from fslab.feasibility import with_stack_plugins, with_workload_plugins
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.tuning import OF_DEVICES
from fslab.storage import images
from fslab.storage.parsed_stack import parsed_stack
from fslab.study import matrix
from fslab.study.model import Study
from fslab.units import parse_duration
from fslab.workloads import Traits, parsed

Place = Callable[[Sequence[StackSpec]], Sequence[StackSpec]]
Fit = Callable[[tuple[Cell, ...]], tuple[Cell, ...]]

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


# An expected duration can easily be wrong by this factor.
_PATIENCE = 4

SEED_BITS = 31


def expand(
    study: Study,
    place: Place | None = None,
    fit: Fit | None = None,
) -> tuple[Cell, ...]:
    """Return all cells: workload by workload in the study's order, each with all of its stacks.

    ``place`` chooses the machines of stacks that may run on any (``on: auto``, ``best``). ``fit`` returns the cells,
    without slices if there is no room for all stacks of a workload at once.
    """
    stacks = matrix.stack_specs(study.stacks, study.media)
    if place is not None:
        placed = place([stack for _, stack in stacks])
        stacks = [(entry, stack) for (entry, _), stack in zip(stacks, placed, strict=True)]
    stacks = [(entry, with_stack_plugins(stack)) for entry, stack in stacks]
    cells = tuple(
        Cell(
            stack=stack,
            workload=spec,
            cache=workload.cache or study.cache,
            fresh=workload.fresh or study.fresh,
            time_limit_s=workload.time_limit_s or _time_limit_s(study, spec),
            tuning=study.tuning,
            known_limits=tuple(sorted(study.known_limits)),
        )
        for name, workload in study.workloads.items()
        for spec in map(with_workload_plugins, matrix.workload_specs(name, workload))
        for entry, stack in stacks
        if (only := study.stacks[entry].workloads) is None or name in only
    )
    sliced = with_slices(cells, study.slices)
    return fit(sliced) if fit is not None else sliced


def _time_limit_s(study: Study, spec: WorkloadSpec) -> float:
    """Return the study's time limit; unless the study sets it, workloads that take long get more than the default."""
    if "time_limit_s" in study.model_fields_set:
        return study.time_limit_s
    return max(study.time_limit_s, round(_PATIENCE * parsed(spec).expected_s()))


def order(cells: Sequence[Cell], trials: int, seed: int) -> list[tuple[int, Cell]]:
    """Return every trial as (block, cell), in the order of running; blocks count from 0.

    A randomised complete block design: each block contains every cell once, in a random order of its own. A drift from
    block to block (temperature, other load, an ageing device) therefore affects all cells alike, and comparisons within
    a block are free of it. Within a block, the stacks of one workload follow each other, so that what is compared is
    measured within seconds or minutes: workloads are in a random order, and so are the stacks of each. Fisher, The
    Design of Experiments (1935), ch. IV; Montgomery, Design and Analysis of Experiments, ch. 4.

    The order depends only on the seed, the block and the cells in the given order, not on the Python version's
    hashing: ``random.Random`` seeds itself from a string by SHA-512, and ``sample`` is stable since 3.2.
    """
    together = by_workload(cells)
    return [(block, cell) for block in range(trials) for cell in order_block(together, block, seed)]


def order_block(together: Sequence[Sequence[Cell]], block: int, seed: int) -> list[Cell]:
    """Return the cells of one block, in the order of running. ``together``: as :func:`by_workload` returns them."""
    drawn = random.Random(f"{seed}:{block}")  # noqa: S311 - an order, no secret
    return [cell for each in drawn.sample(together, len(together)) for cell in drawn.sample(each, len(each))]


def tool_seed(seed: int, block: int) -> int:
    """Return the tools' seed for one block: all cells of a block draw the same offsets, each block new ones.

    31 bits and never 0, because sysbench interprets 0 as "use the clock".
    """
    return random.Random(f"{seed}:{block}:tool").randrange(1, 1 << SEED_BITS)  # noqa: S311 - no secret
