"""Warnings of what a scale costs: runs of a plan that will be too short or too small to represent the full study. Pure.

These are forecasts. ``validity`` judges the actual trials.
"""

from collections.abc import Iterable, Iterator, Sequence

from fslab.cell import Cell, MachineSpec, WorkloadSpec
from fslab.machine.kinds import DEFAULT_MEMORY
from fslab.scaling import Scaled
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.units import first_of, format_size, parse_size
from fslab.workloads import parsed, traits_of

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
    return (
        *unscaled,
        *_too_short(workloads),
        *_in_memory(cells, memory_bytes),
        *_small_volumes(cells),
        *_floors(scaled),
    )


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
