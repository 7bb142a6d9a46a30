"""Prepares the media of a trial, activates them during its run, and describes them for its record."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fslab.analysis import disk_request_map
from fslab.cell import Cell
from fslab.storage import Workspace, images
from fslab.storage.media import Medium
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import disk_server, mountinfo
from fslab.tracing import SECTOR_BYTES, ondisk_layout
from fslab.trial_record import Value

VIRTUAL = "virtual_disks"
BEGINS, ENDS = "run begins", "run ends"  # messages of a guest


def facts(cell: Cell, workspace: Workspace) -> dict[str, Any]:
    """Return the medium's facts about each disk; empty if there are none. Raises the error that made a disk fail."""
    found = [medium.about(options, workspace, slot) for medium, options, slot in _disks(cell)]
    return {VIRTUAL: found} if any(found) else {}


def image_filesystem(cell: Cell, workspace: Workspace) -> str | None:
    """Return the type of the file system that the images of the disks lie on; None if there are none, or if the medium
    is one in memory."""
    stack = parsed_stack(cell.stack)
    places = stack.medium.plan(stack.medium_options, workspace.images).space.keys() - {images.MEMORY}
    return next((mountinfo.containing(Path(place)).filesystem for place in places), None)


def statistics(device: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the counters of the virtual disks' servers, from what ``facts`` returned."""
    return [each["statistics"] for each in device.get(VIRTUAL, ()) if each]


def renew(cell: Cell, workspace: Workspace, *, in_guest: bool) -> None:
    """Reset the disks to the state of new ones, before a file system is made on them."""
    for medium, options, slot in _disks(cell):
        medium.renew(options, workspace, slot, in_guest=in_guest)


def halt(cell: Cell, workspace: Workspace, *, halted: bool) -> None:
    """Stop the own time of the disks, or let it go on: while others have their turns, they do nothing."""
    for medium, options, slot in _disks(cell):
        medium.halt(options, workspace, slot, halted=halted)


def note_lost(cell: Cell, workspace: Workspace) -> None:
    """Note that a file system that was to last exists no longer, if one of its disks is lost: it is made again."""
    if not cell.fresh.lasts or cell.slot not in workspace.made:
        return
    if not all(medium.lasts(options, workspace, slot) for medium, options, slot in _disks(cell)):
        workspace.made.discard(cell.slot)
        workspace.lost.add(cell.slot)


def fidelities(device: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return how accurately each virtual disk can be served, from what ``facts`` returned."""
    return tuple(each["fidelity"] for each in device.get(VIRTUAL, ()) if each.get("fidelity"))


def requests(
    cell: Cell, workspace: Workspace, bare_disk: Path | None = None
) -> tuple[dict[str, Value], dict[str, str]]:
    """Return what the logs of the disks show of a run that has just ended: figures, and a text to store.

    Both are empty if no disk keeps a log. ``bare_disk``: the device, if the file system lies on one disk without a
    layout. Its superblock is read then, for the place of the journal.
    """
    parsed = parsed_stack(cell.stack)
    rate = parsed.medium.speed(parsed.medium_options)
    paths = [medium.request_log(options, workspace, slot) for medium, options, slot in _disks(cell)]
    logs = [disk_server.read_log(path) for path in paths if path is not None]
    journal = _journal(bare_disk) if len(logs) == 1 else ()
    found = [each for log in logs if (each := disk_request_map.requests_of(log, journal)) is not None]
    maps = [disk_request_map.map_of(each, rate) for each in found]
    return disk_request_map.figures(found, rate), {
        disk_request_map.NAME: disk_request_map.stored(maps)
    } if maps else {}


def _journal(bare_disk: Path | None) -> disk_request_map.Ranges:
    """Return the places of the journal in bytes; empty if unknown. The disk may have faults that make it unreadable."""
    try:
        places = ondisk_layout.of(bare_disk).journal if bare_disk else ()
    except OSError:
        return []
    return [(low * SECTOR_BYTES, high * SECTOR_BYTES) for low, high in places or ()]


@contextmanager
def running(cell: Cell, workspace: Workspace) -> Iterator[None]:
    """Activate the medium during the run: the times of the disk that it models, and its faults.

    Not active earlier, because making a file system would take minutes.
    """
    with ExitStack() as undo:
        if workspace.attached is None:
            for medium, options, slot in _disks(cell):
                undo.enter_context(medium.running(options, workspace, slot))
        else:
            workspace.tell_host(BEGINS)
            undo.callback(workspace.tell_host, ENDS)
        yield


def _disks(cell: Cell) -> list[tuple[Medium[Any], Any, str]]:
    """Return the medium, its options and the slot of each disk of a cell; none on an existing file system."""
    parsed = parsed_stack(cell.stack)
    if not parsed.medium.formatted:
        return []
    disks = zip(parsed.each_medium_options(), parsed.slots(cell.slot), strict=True)
    return [(parsed.medium, options, slot) for options, slot in disks]
