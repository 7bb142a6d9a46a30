"""Whether everything that a campaign needs at the same time fits: space on each file system, and memory.

Creates nothing. Counts sizes that are known: images, what workloads write into directories, their buffers, the memory
of guests. What a workload writes to an image is limited by the image.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fslab import workloads
from fslab.cell import Cell
from fslab.errors import NoSpaceError
from fslab.machine.kinds import DEFAULT_MEMORY, REGISTRY
from fslab.machine.planned_machine import here
from fslab.storage import images
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import MediumPlan
from fslab.storage.parsed_stack import parsed_stack
from fslab.units import format_size, parse_size


@dataclass(kw_only=True, slots=True)
class _Need:
    """Bytes needed on one file system. Images stay until the campaign ends; files in a directory only for a trial."""

    place: Path
    images_bytes: int = 0
    trial_bytes: int = 0


def check_room(cells: Sequence[Cell], images_directory: Path) -> None:
    """Raise NoSpaceError if these cells together need more than is available."""
    in_memory = 0
    for need in _needs(cells, images_directory).values():
        most_bytes = need.images_bytes + need.trial_bytes
        here().check_space(need.place, most_bytes)
        if here().in_memory(need.place):
            in_memory += most_bytes
    guests_bytes, ram_bytes = _memory_of_guests(cells), _ram_bytes(cells, images_directory)
    if total := in_memory + guests_bytes + ram_bytes + _buffers_bytes(cells):
        here().check_memory(total)
    inside = [cell for cell in cells if REGISTRY.get(cell.stack.machine.type).guest]
    filed = [cell for cell in inside if REGISTRY.get(cell.stack.machine.type).memory_file]
    if files_bytes := _ram_bytes(inside, images_directory) + _memory_of_guests(filed):
        here().check_memory_files(files_bytes)


def _buffers_bytes(cells: Sequence[Cell]) -> int:
    """Return the largest memory that a tool allocates on the host. NoSpaceError if a tool in a guest needs more memory
    than the guest has."""
    largest = 0
    for cell in cells:
        needed, machine = workloads.parsed(cell.workload).memory_bytes(), cell.stack.machine
        if not REGISTRY.get(machine.type).guest:
            largest = max(largest, needed)
        elif needed > (has := parse_size(machine.memory or DEFAULT_MEMORY)):
            raise NoSpaceError(
                f"{cell.workload.name} allocates {format_size(needed)} of memory, and the guest has {format_size(has)}",
                where=cell.stack.name,
                hint="use smaller requests, a smaller queue depth, or more --guest-memory",
            )
    return largest


def _needs(cells: Sequence[Cell], images_directory: Path) -> dict[int, _Need]:
    """Return the needs by device number (``st_dev``): places on one file system share its free space."""
    found: dict[int, _Need] = {}

    def of(place: str) -> _Need:
        number, existing = here().filesystem_of(Path(place).expanduser())
        return found.setdefault(number, _Need(place=existing))

    for place, size_bytes in space_of(media_of(cells, images_directory)).items():
        if place != images.MEMORY:
            of(place).images_bytes += size_bytes
    for cell in cells:
        if not MEDIA.get(cell.stack.medium.type).formatted:
            size_bytes = workloads.parsed(cell.workload).space_bytes()
            need = of(str(cell.stack.medium.options["path"]))
            need.trial_bytes = max(need.trial_bytes, size_bytes)
    return found


def places_of(cells: Sequence[Cell], images_directory: Path) -> set[str]:
    """Return the directories that the study names."""
    own = {images.MEMORY, str(images_directory)}
    existing = (cell for cell in cells if not MEDIA.get(cell.stack.medium.type).formatted)
    named = {str(cell.stack.medium.options["path"]) for cell in existing}
    return (set(space_of(media_of(cells, images_directory))) | named) - own


def _ram_bytes(cells: Sequence[Cell], images_directory: Path) -> int:
    return space_of(media_of(cells, images_directory)).get(images.MEMORY, 0)


def _memory_of_guests(cells: Sequence[Cell]) -> int:
    """Return the maximum memory of all guests together: they stay up until the campaign ends."""
    guests = {cell.stack.machine for cell in cells if REGISTRY.get(cell.stack.machine.type).guest}
    return sum(parse_size(spec.memory or DEFAULT_MEMORY) for spec in guests)


def medium_plan(cell: Cell, images: Path) -> MediumPlan:
    """Return the plan of one device of the cell's medium."""
    planned = parsed_stack(cell.stack).medium_plan(images)
    machine = REGISTRY.get(cell.stack.machine.type)
    return replace(planned, device=machine.device, commands=()) if machine.guest else planned


def media_of(cells: Sequence[Cell], images: Path) -> list[tuple[MediumPlan, int]]:
    """Return the plan of each slot and its number of devices. A slot counts once, with the largest of its cells."""
    found: dict[str, tuple[MediumPlan, int]] = {}
    for cell in cells:
        own = medium_plan(cell, images), parsed_stack(cell.stack).disks
        found[cell.slot] = max(found.get(cell.slot, own), own, key=_size)
    return list(found.values())


def _size(planned: tuple[MediumPlan, int]) -> tuple[int, int]:
    return planned[1], sum(planned[0].space.values())


def space_of(media: Iterable[tuple[MediumPlan, int]]) -> dict[str, int]:
    """Return the bytes needed at the same time in each place: a directory, or ``memory``."""
    space = Counter[str]()
    for planned, disks in media:
        space.update({place: needed * disks for place, needed in planned.space.items()})
    return dict(space)
