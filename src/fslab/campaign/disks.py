"""Prepares the media of a trial, activates them during its run, and describes them for its record."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fslab.analysis import request_map
from fslab.cell import Cell
from fslab.record import Value
from fslab.storage import Workspace
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import block_log
from fslab.tracing import SECTOR_BYTES, ondisk_layout

VIRTUAL = "virtual_disks"
BEGINS, ENDS = "run begins", "run ends"  # messages of a guest


def facts(cell: Cell, workspace: Workspace) -> dict[str, Any]:
    """Return the medium's facts about each disk; empty if there are none. Raises the error that made a disk fail."""
    medium = parsed_stack(cell.stack).medium
    found = [medium.about(each, workspace, slot) for each, slot in _disks(cell)] if medium.formatted else []
    return {VIRTUAL: found} if any(found) else {}


def statistics(device: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the counters of the virtual disks' servers, from what ``facts`` returned."""
    return [each["statistics"] for each in device.get(VIRTUAL, ()) if each]


def renew(cell: Cell, workspace: Workspace, *, in_guest: bool) -> None:
    """Reset the disks to the state of new ones, before a file system is made on them."""
    medium = parsed_stack(cell.stack).medium
    for each, slot in _disks(cell) if medium.formatted else ():
        medium.renew(each, workspace, slot, in_guest=in_guest)


def halt(cell: Cell, workspace: Workspace, *, halted: bool) -> None:
    """Stop the own time of the disks, or let it go on: while others have their turns, they do nothing."""
    medium = parsed_stack(cell.stack).medium
    for each, slot in _disks(cell) if medium.formatted else ():
        medium.halt(each, workspace, slot, halted=halted)


def note_lost(cell: Cell, workspace: Workspace) -> None:
    """Note that a file system that was to last exists no longer, if one of its disks is lost: it is made again."""
    medium = parsed_stack(cell.stack).medium
    if not cell.fresh.lasts or cell.slot not in workspace.made:
        return
    if not all(medium.lasts(each, workspace, slot) for each, slot in _disks(cell)):
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
    medium, rate = parsed.medium, parsed.medium.speed(parsed.medium_options)
    paths = (
        [medium.request_log(each, workspace, slot) for each, slot in _disks(cell)] if medium.formatted else []
    )
    logs = [block_log.read(path) for path in paths if path is not None]
    journal = _journal(bare_disk) if len(logs) == 1 else ()
    found = [each for log in logs if (each := request_map.requests_of(log, journal)) is not None]
    maps = [request_map.map_of(each, rate) for each in found]
    return request_map.figures(found, rate), {request_map.NAME: request_map.stored(maps)} if maps else {}


def _journal(bare_disk: Path | None) -> request_map.Ranges:
    """Return the places of the journal in bytes; empty if unknown. The disk may have faults that make it unreadable."""
    try:
        places = ondisk_layout.of(bare_disk).journal if bare_disk else ()
    except OSError:
        return []
    return [(low * SECTOR_BYTES, high * SECTOR_BYTES) for low, high in places]


@contextmanager
def running(cell: Cell, workspace: Workspace) -> Iterator[None]:
    """Activate the medium during the run: the times of the disk that it models, and its faults.

    Not active earlier, because making a file system would take minutes.
    """
    parsed = parsed_stack(cell.stack)
    with ExitStack() as undo:
        if workspace.attached is None:
            for each, slot in _disks(cell) if parsed.medium.formatted else ():
                undo.enter_context(parsed.medium.running(each, workspace, slot))
        else:
            workspace.tell_host(BEGINS)
            undo.callback(workspace.tell_host, ENDS)
        yield


def _disks(cell: Cell) -> list[tuple[Any, str]]:
    parsed = parsed_stack(cell.stack)
    return list(zip(parsed.each_medium_options(), parsed.slots(cell.slot), strict=True))
