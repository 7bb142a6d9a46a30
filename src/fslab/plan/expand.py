"""A study's cells: every stack with every workload that runs on it. Pure."""

from collections.abc import Callable, Sequence

from fslab.cell import Cell, StackSpec, WorkloadSpec
from fslab.feasibility import with_stack_plugins, with_workload_plugins
from fslab.plan.slicing import with_slices
from fslab.study import matrix
from fslab.study.model import Study, StudyStack
from fslab.workloads import parsed

# An expected duration can easily be wrong by this factor.
_PATIENCE = 4


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
        if _runs_on(study.stacks[entry], name)
    )
    sliced = with_slices(cells, study.slices)
    return fit(sliced) if fit is not None else sliced


def _time_limit_s(study: Study, spec: WorkloadSpec) -> float:
    """Return the study's time limit; unless the study sets it, workloads that take long get more than the default."""
    if "time_limit_s" in study.model_fields_set:
        return study.time_limit_s
    return max(study.time_limit_s, round(_PATIENCE * parsed(spec).expected_s()))


def _runs_on(stack: StudyStack, workload: str) -> bool:
    return stack.workloads is None or workload in stack.workloads
