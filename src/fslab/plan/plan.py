"""Makes the plan of a study. Touches no device, starts no process, reads neither /sys nor the clock."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fslab.cell import Cell, MachineSpec, StackSpec, by_workload
from fslab.feasibility import media_of, space_of, why_not
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.planned_machine import here
from fslab.plan import slicing
from fslab.plan.commands import Paths, commands_of
from fslab.plan.expand import expand, order, tool_seed
from fslab.plan.model import Plan, PlannedMachine, PlannedTrial
from fslab.plan.scale_warnings import scale_warnings
from fslab.plan.shared_states import groups
from fslab.stopping_settings import StoppingRule
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.media import MediumPlan
from fslab.storage.parsed_stack import parsed_stack
from fslab.study.model import Study
from fslab.workloads import DISK_BYTES_PER_S, parsed

# Attach, mkfs, two mounts, cache drop, flush and detach: 0.3 s, measured on ext4, xfs and btrfs in memory, plus a
# margin for slower media.
OVERHEAD_S = 0.4
_NO_ROOM = "there is no room for the images of all stacks at once"
IMAGE_BYTES_PER_S = 500e6
PASSED_ZEROS_BYTES_PER_S = 15e9  # as commands to virtual disks; seen: ext4 of 3 to 16 TiB 12e9 to 20e9
ZEROS_BYTES_PER_S = 500e6  # as data; seen: LUKS 190e6, md RAID 5 260e6 to 1.1e9, a thin volume 2.2e9


def make_plan(
    study: Study,
    *,
    images: Path,
    runtime: Path,
    place: Callable[[Sequence[StackSpec]], Sequence[StackSpec]] | None = None,
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
    devices, wipes = _devices(media)
    expected_s, most_s = _times(cells, study.stopping, sum(space.values()))
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
        commands={
            cell.id: commands_of(cell, paths, seed=seed, turns=1 if cell.slice_s is None else len(group))
            for group in by_workload(cells)
            for cell in group
        },
        machines=_machines(cells),
        impossible={cell.id: why for cell in cells if (why := why_not(cell))},
        devices=devices,
        space=space,
        wipes=wipes,
        stopping=study.stopping,
        expected_s=expected_s,
        expected_most_s=most_s,
        budget_s=study.limit_s,
        scale=study.scale,
        scaled=study.scaled,
        costs=scale_warnings(cells, study.scaled, memory_bytes, factor=study.scale),
        notices=notices(cells),
        whole=_whole(cells) if study.slices != slicing.OFF else {},
        shared=groups(cells),
    )


def without(
    made: Plan, impossible: Mapping[str, str], left_out: frozenset[str], refused: Sequence[str]
) -> Plan:
    """Return the plan without the trials of cells that are not possible, or that are left out."""
    found = made.model_copy(
        update={
            "impossible": {**made.impossible, **impossible},
            "left_out": left_out,
            "refused": tuple(refused),
        }
    )
    ids = {cell.id for cell in found.measured}
    expected_s, most_s = _times(found.measured, found.stopping, sum(found.space.values()))
    return found.model_copy(
        update={
            "order": tuple(each for each in found.order if each.cell in ids),
            "shared": {cell: each for cell, each in found.shared.items() if cell in ids},
            "expected_s": expected_s,
            "expected_most_s": most_s,
        }
    )


def _devices(media: Iterable[tuple[MediumPlan, int]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the devices in use, and of these the ones whose content will be lost."""
    lost = [(planned, planned.wipes[:disks]) for planned, disks in media]
    used = (
        device
        for planned, own in lost
        if planned.size_bytes or planned.wipes
        for device in own or (planned.device,)
    )
    return tuple(dict.fromkeys(used)), tuple(dict.fromkeys(device for _, own in lost for device in own))


def _whole(cells: Sequence[Cell]) -> dict[str, str]:
    """Return why workloads of several stacks are not measured in slices, by their names."""
    groups = [each for each in by_workload(cells) if len(each) > 1 and each[0].slice_s is None]
    return {each[0].workload.name: slicing.why_whole(each) or _NO_ROOM for each in groups}


def notices(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return what a reader would not expect: job files' options that are left out, discards not allowed, less memory
    than the machine has."""
    told = (
        each
        for cell in cells
        for each in (
            *_limits(cell.stack.machine),
            *parsed_stack(cell.stack).notices(),
            *(f"{cell.workload.name}: {each}" for each in parsed(cell.workload).notices()),
        )
    )
    return tuple(dict.fromkeys(told))


def _limits(spec: MachineSpec) -> Iterator[str]:
    if spec.limits_tool:
        yield f"the memory of the tool and of its page cache is limited to {spec.memory} (guest_memory)"


def _machines(cells: Sequence[Cell]) -> tuple[PlannedMachine, ...]:
    stacks: dict[MachineSpec, dict[str, None]] = {}
    for cell in cells:
        stacks.setdefault(cell.stack.machine, {})[cell.stack.name] = None
    return tuple(
        PlannedMachine(type=spec.type, stacks=tuple(names), emulated=here().emulated(spec))
        for spec, names in stacks.items()
    )


def trial_s(cell: Cell) -> float:
    """Return a rough duration of one trial of a cell."""
    machine = MACHINES.get(cell.stack.machine.type)
    slowdown = machine.emulated_factor if here().emulated(cell.stack.machine) else 1.0
    workload, stack = parsed(cell.workload), parsed_stack(cell.stack)
    moved_s = workload.moved_bytes() * (
        1 / (stack.medium.bytes_per_s or DISK_BYTES_PER_S) - 1 / DISK_BYTES_PER_S
    )
    waits_s = workload.waits() * stack.medium.seek_s(stack.medium_options)
    work_s = max(workload.expected_s() + moved_s, waits_s)
    return slowdown * (work_s + OVERHEAD_S + machine.trial_s) + _made_s(cell)


def _made_s(cell: Cell) -> float:
    """Return how long mkfs writes zeros: as data, if the layout cannot pass on the command for them."""
    stack = parsed_stack(cell.stack)
    planned = stack.medium_plan(Path())
    if cell.stack.filesystem is None or planned.size_bytes is None:
        return 0.0
    made = FILESYSTEMS.get(cell.stack.filesystem).made_with(cell.stack.mkfs_options)
    rate = PASSED_ZEROS_BYTES_PER_S if stack.passes_zeros() else ZEROS_BYTES_PER_S
    return made.zeros(stack.usable_bytes(planned.size_bytes)) / rate


def _times(cells: Sequence[Cell], stopping: StoppingRule, image_bytes: int) -> tuple[float, float | None]:
    """Return a rough duration with the first trials of each cell, and that with the most, if more can follow."""
    boots_s = sum(MACHINES.get(spec.type).boot_s for spec in {cell.stack.machine for cell in cells})
    block_s, once_s = sum(map(trial_s, cells)), boots_s + image_bytes / IMAGE_BYTES_PER_S
    most_s = None if stopping.precision is None else stopping.most * block_s + once_s
    return stopping.trials * block_s + once_s, most_s
