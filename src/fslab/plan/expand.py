"""A study's cells: every stack with every workload that runs on it, and the order of their trials. Pure."""

import random
from collections.abc import Callable, Sequence

from fslab.cell import Cell, StackSpec, WorkloadSpec, by_workload
from fslab.feasibility import with_stack_plugins, with_workload_plugins
from fslab.plan.slicing import with_slices
from fslab.study import matrix
from fslab.study.model import Study
from fslab.workloads import parsed

# An expected duration can easily be wrong by this factor.
_PATIENCE = 4

SEED_BITS = 31


def expand(
    study: Study,
    place: Callable[[Sequence[StackSpec]], Sequence[StackSpec]] | None = None,
    fit: Callable[[tuple[Cell, ...]], tuple[Cell, ...]] | None = None,
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
