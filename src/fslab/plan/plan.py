"""Makes the plan of a study. Pure: touches no device, starts no process, reads neither /sys nor the clock."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from fslab.cell import Cell, StackSpec
from fslab.feasibility import media_of, space_of, why_not
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.plan.commands import Paths, commands_of
from fslab.plan.expand import expand
from fslab.plan.model import Plan, PlannedTrial
from fslab.plan.order import order, tool_seed
from fslab.plan.scale_warnings import scale_warnings
from fslab.plan.shared_states import groups
from fslab.storage.parsed_stack import parsed_stack
from fslab.study.model import Study
from fslab.workloads import parsed

# Attach, mkfs, two mounts, cache drop, flush and detach: 0.3 s, measured on ext4, xfs and btrfs in memory, plus a
# margin for slower media.
OVERHEAD_S = 0.4
IMAGE_BYTES_PER_S = 500e6
# In User-Mode Linux, measured on one CPU: a boot until the guest listens, and the extra time of each trial.
GUEST_BOOT_S = 2.0
GUEST_OVERHEAD_S = 1.0


def make_plan(
    study: Study,
    *,
    images: Path,
    runtime: Path,
    place: Callable[[StackSpec], StackSpec] | None = None,
    fit: Callable[[tuple[Cell, ...]], tuple[Cell, ...]] | None = None,
    memory_bytes: int | None = None,
) -> Plan:
    """Return the plan of ``study`` for a campaign that keeps its images and mount points in these directories.

    Commands contain the tool's seed of the first block. ``place``, ``fit``: see ``expand``. ``memory_bytes``: of the
    host; None if unknown.
    """
    paths = Paths(images=images, runtime=runtime)
    cells = expand(study, place, fit)
    media = media_of(cells, images)
    space = space_of(media)
    seed = tool_seed(study.seed, 0)
    return Plan(
        study=study.id,
        title=study.title,
        cells=cells,
        trials=study.trials,
        seed=study.seed,
        order=tuple(
            PlannedTrial(block=block, cell=cell.id) for block, cell in order(cells, study.trials, study.seed)
        ),
        commands={cell.id: commands_of(cell, paths, seed=seed) for cell in cells},
        impossible={cell.id: why for cell in cells if (why := why_not(cell))},
        devices=tuple(
            dict.fromkeys(
                device
                for planned, disks in media
                if planned.size_bytes or planned.wipes
                for device in planned.wipes[:disks] or (planned.device,)
            )
        ),
        space=space,
        wipes=tuple(dict.fromkeys(device for planned, disks in media for device in planned.wipes[:disks])),
        stopping=study.stopping,
        expected_s=_expected_s(cells, study.trials, sum(space.values())),
        expected_most_s=_expected_s(cells, study.stopping.most, sum(space.values()))
        if study.stopping.precision is not None
        else None,
        budget_s=study.limit_s,
        scale=study.scale,
        scaled=study.scaled,
        costs=scale_warnings(cells, study.scaled, memory_bytes, factor=study.scale),
        notices=notices(cells),
        shared=groups(cells),
    )


def notices(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return what happens otherwise than the study says: job files' options that are left out, discards not allowed."""
    told = (
        each
        for cell in cells
        for each in (
            *parsed_stack(cell.stack).notices(),
            *(f"{cell.workload.name}: {each}" for each in parsed(cell.workload).notices()),
        )
    )
    return tuple(dict.fromkeys(told))


def trial_s(cell: Cell) -> float:
    """Return a rough duration of one trial of a cell."""
    guest = MACHINES.get(cell.stack.machine.type).guest
    return parsed(cell.workload).expected_s() + OVERHEAD_S + (GUEST_OVERHEAD_S if guest else 0.0)


def _expected_s(cells: Sequence[Cell], trials: int, image_bytes: int) -> float:
    guests = [cell.stack.machine for cell in cells if MACHINES.get(cell.stack.machine.type).guest]
    return (
        trials * sum(map(trial_s, cells)) + GUEST_BOOT_S * len(set(guests)) + image_bytes / IMAGE_BYTES_PER_S
    )
