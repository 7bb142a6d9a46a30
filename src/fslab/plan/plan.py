"""Makes the plan of a study. Touches no device, starts no process, reads neither /sys nor the clock.

Warns of what a scale costs: runs that will be too short or too small to represent the full study. These are forecasts;
``validity`` judges the actual trials.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from fslab.cell import Cell, MachineSpec, WorkloadSpec, by_workload, grouped
from fslab.feasibility import media_of, medium_plan, space_of, why_not
from fslab.machine.kinds import DEFAULT_MEMORY
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.planned_machine import here
from fslab.plan.commands import Paths, commands_of
from fslab.plan.expand import OFF, Fit, Place, expand, order, tool_seed, why_whole
from fslab.plan.model import Plan, PlannedMachine, PlannedTrial
from fslab.plan.shared_states import groups
from fslab.scaling import Scaled
from fslab.stopping_settings import StoppingRule
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import MediumPlan
from fslab.storage.parsed_stack import parsed_stack
from fslab.study.model import Study
from fslab.units import first_of, format_size, parse_size
from fslab.workloads import DISK_BYTES_PER_S, parsed, traits_of

# Attach, mkfs, two mounts, cache drop, flush and detach: 0.3 s, measured on ext4, xfs and btrfs in memory, plus a
# margin for slower media.
OVERHEAD_S = 0.4
_LIMIT = "the memory of the tool and of its page cache is limited to {} (guest_memory)"
_NO_ROOM = "there is no room for the images of all stacks at once"
IMAGE_BYTES_PER_S = 500e6
PASSED_ZEROS_BYTES_PER_S = 15e9  # as commands to virtual disks; seen: ext4 of 3 to 16 TiB 12e9 to 20e9
ZEROS_BYTES_PER_S = 500e6  # as data; seen: LUKS 190e6, md RAID 5 260e6 to 1.1e9, a thin volume 2.2e9


def make_plan(
    study: Study,
    *,
    images: Path,
    runtime: Path,
    place: Place | None = None,
    fit: Fit | None = None,
    memory_bytes: int | None = None,
) -> Plan:
    """Return the plan of ``study`` for a campaign that keeps its images and mount points in these directories.

    Commands contain the tool's seed of the first block. ``place``, ``fit``: see ``expand``. ``memory_bytes``: of the
    host; None if unknown.
    """
    paths = Paths(images=images, runtime=runtime)
    cells = expand(study, place, fit)
    space = space_of(media_of(cells, images))
    # Of each cell, not of each slot: a guest has other names for the devices of a host's image.
    devices, wipes = _devices((medium_plan(cell, images), parsed_stack(cell.stack).disks) for cell in cells)
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
        whole=_whole(cells) if study.slices != OFF else {},
        shared=groups(cells),
    )


def without(
    made: Plan, impossible: Mapping[str, str], left_out: frozenset[str], refused: Sequence[str]
) -> Plan:
    """Return the plan without the trials of cells that are not possible, or that are left out."""
    known = {"impossible": {**made.impossible, **impossible}, "left_out": left_out, "refused": tuple(refused)}
    found = made.model_copy(update=known)
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
    used: dict[str, None] = {}
    lost: dict[str, None] = {}
    for planned, disks in media:
        wiped = planned.wipes[:disks]
        lost |= dict.fromkeys(wiped)
        if planned.size_bytes or planned.wipes:
            used |= dict.fromkeys(wiped or (planned.device,))
    return tuple(used), tuple(lost)


def _whole(cells: Sequence[Cell]) -> dict[str, str]:
    """Return why workloads of several stacks are not measured in slices, by their names."""
    groups = [each for each in by_workload(cells) if len(each) > 1 and each[0].slice_s is None]
    return {each[0].workload.name: why_whole(each) or _NO_ROOM for each in groups}


def notices(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return what a reader would not expect: job files' options that are left out, discards not allowed, less memory
    than the machine has."""
    told = (
        each
        for cell in cells
        for each in (
            *([_LIMIT.format(cell.stack.machine.memory)] if cell.stack.machine.limits_tool else []),
            *parsed_stack(cell.stack).notices(),
            *(f"{cell.workload.name}: {each}" for each in parsed(cell.workload).notices()),
        )
    )
    return tuple(dict.fromkeys(told))


def _machines(cells: Sequence[Cell]) -> tuple[PlannedMachine, ...]:
    stacks = grouped((cell.stack for cell in cells), lambda stack: stack.machine)
    return tuple(
        PlannedMachine(
            type=spec.type, stacks=tuple(dict.fromkeys(stack.name for stack in own)), emulated=here().emulated(spec)
        )
        for spec, own in stacks.items()
    )  # fmt: skip


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


SHORT_S = 1.0
BRIEF_S = 30.0
_NAMES = 4


def scale_warnings(
    cells: Sequence[Cell], scaled: Sequence[Scaled], memory_bytes: int | None, *, factor: float
) -> tuple[str, ...]:
    """Return one sentence for each kind of loss; none if nothing was scaled. ``memory_bytes``: None if unknown.
    ``factor``: the study's scale."""
    workloads = list({cell.workload.name: cell.workload for cell in cells}.values())
    unscaled = tuple(_unscaled(workloads, scaled)) if factor != 1 else ()
    if not scaled:
        return unscaled
    lost = (
        _too_short(workloads), _in_memory(cells, memory_bytes), _small_volumes(cells),
        _journals(cells) if factor <= 1 else (), _floors(scaled),
    )  # fmt: skip
    return (*unscaled, *chain.from_iterable(lost))


def _unscaled(workloads: Iterable[WorkloadSpec], scaled: Sequence[Scaled]) -> Iterator[str]:
    entries = {each.entry for each in scaled}
    left: dict[str, None] = {}
    for spec in workloads:
        name = spec.name.partition("[")[0]
        if f"workloads.{name}" not in entries:
            left[name] = None
        else:
            left |= dict.fromkeys(f"{name} {what}" for what in parsed(spec).unscaled())
    if left:
        yield f"not scaled, as fslab knows no amount of work in it: {first_of(list(left), _NAMES)}"


def _too_short(workloads: Iterable[WorkloadSpec]) -> Iterator[str]:
    expected = {spec.name: parsed(spec).expected_s() for spec in workloads}
    short = [name for name, seconds in expected.items() if seconds < SHORT_S]
    brief = [name for name, seconds in expected.items() if SHORT_S <= seconds < BRIEF_S]
    if short:
        yield f"shorter than {SHORT_S:g} s, so that start and end of the run matter: {first_of(short, _NAMES)}"
    if brief:
        yield (
            f"shorter than {BRIEF_S:g} s, so that commits and writeback occur in some trials only: "
            f"{first_of(brief, _NAMES)}"
        )


def _in_memory(cells: Sequence[Cell], memory_bytes: int | None) -> Iterator[str]:
    """Warn of buffered work on files smaller than memory. Direct I/O is not affected: it bypasses the page cache."""
    small: dict[str, int] = {}
    for cell in cells:
        memory = _memory(cell, memory_bytes)
        if memory is not None and not traits_of(cell.workload).direct and _files_bytes(cell) < memory:
            small[cell.workload.name] = memory
    if small:
        yield (
            f"files smaller than memory ({', '.join(sorted({format_size(each) for each in small.values()}))}), so that "
            f"the page cache serves repeated reads and absorbs unflushed writes: {first_of(list(small), _NAMES)}"
        )


def _small_volumes(cells: Sequence[Cell]) -> Iterator[str]:
    found = {}
    for cell in cells:
        fair = FILESYSTEMS.get(cell.stack.filesystem).fair_size_bytes if cell.stack.filesystem else None
        size = cell.stack.medium.options.get("size")
        image = MEDIA.get(cell.stack.medium.type).image
        if image and fair is not None and size is not None and parse_size(str(size)) < fair:
            found[cell.stack.filesystem] = fair
    for name, fair in found.items():
        yield f"volumes smaller than {format_size(fair)}, on which {name} is slower than on larger ones"


def _journals(cells: Sequence[Cell]) -> Iterator[str]:
    """Warn of journals of a set size. Those that mkfs chooses shrink with the volume."""
    stacks = [parsed_stack(cell.stack) for cell in cells]
    plans = (stack.layout_plan([f"disk{index}" for index in range(stack.disks)], "") for stack in stacks)
    sizes = sorted({each.journal_bytes for each in plans if each.journal_bytes})
    if sizes:
        yield (
            f"journals on a disk of their own keep their size ({', '.join(map(format_size, sizes))}), so that they "
            "fill up less often"
        )


def _floors(scaled: Sequence[Scaled]) -> Iterator[str]:
    stayed = [f"{each.entry or 'guest'} {each.key} {each.used}" for each in scaled if each.floor]
    if stayed:
        yield f"minimum size reached: {first_of(list(dict.fromkeys(stayed)), _NAMES)}"


def _memory(cell: Cell, memory_bytes: int | None) -> int | None:
    if cell.stack.machine == MachineSpec():
        return memory_bytes
    return parse_size(cell.stack.machine.memory or DEFAULT_MEMORY)


def _files_bytes(cell: Cell) -> int:
    """Return the size of the files that the workload uses at a time."""
    return traits_of(cell.workload).working_set_bytes or parsed(cell.workload).space_bytes()
