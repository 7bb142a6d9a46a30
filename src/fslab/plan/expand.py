"""A study's cells: every stack with every workload that runs on it. Pure."""

from __future__ import annotations

from collections.abc import Callable

from fslab.cell import Cell, StackSpec
from fslab.study import matrix
from fslab.study.model import Stack, Study


def expand(study: Study, place: Callable[[StackSpec], StackSpec] | None = None) -> tuple[Cell, ...]:
    """All cells, workload by workload in the order written, each with all of its stacks.

    ``place`` decides where a stack runs that may run anywhere (``on: auto``).
    """
    stacks = matrix.stack_specs(study.stacks, study.media)
    if place is not None:
        stacks = [(entry, place(stack)) for entry, stack in stacks]
    return tuple(
        Cell(
            stack=stack,
            workload=spec,
            cache=workload.cache or study.cache,
            fresh=workload.fresh or study.fresh,
            time_limit_s=workload.time_limit_s or study.time_limit_s,
            tuning=study.tuning,
        )
        for name, workload in study.workloads.items()
        for spec in matrix.workload_specs(name, workload)
        for entry, stack in stacks
        if _runs_on(study.stacks[entry], name)
    )


def _runs_on(stack: Stack, workload: str) -> bool:
    return stack.workloads is None or workload in stack.workloads
