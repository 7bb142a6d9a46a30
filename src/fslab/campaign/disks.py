"""Prepares the media of a trial, activates them during its run, and describes them for its record."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from fslab.cell import Cell
from fslab.storage import Workspace
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import throttle

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


def renew(cell: Cell, workspace: Workspace) -> None:
    """Reset the disks to the state of new ones, before a file system is made on them."""
    medium = parsed_stack(cell.stack).medium
    for each, slot in _disks(cell) if medium.formatted else ():
        medium.renew(each, workspace, slot)


def fidelities(device: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return how accurately each virtual disk can be served, from what ``facts`` returned."""
    return tuple(each["fidelity"] for each in device.get(VIRTUAL, ()) if each.get("fidelity"))


@contextmanager
def running(cell: Cell, workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Activate the medium during the run: for example, limit it to the speed of the disk that it emulates.

    Not active earlier, because making a file system would take minutes. Yields the facts for the record.
    """
    parsed = parsed_stack(cell.stack)
    medium, options = parsed.medium, parsed.medium_options
    with ExitStack() as undo:
        if workspace.attached is None:
            for each, slot in _disks(cell) if medium.formatted else ():
                undo.enter_context(medium.running(each, workspace, slot))
            yield {}
            return
        workspace.tell_host(BEGINS)
        undo.callback(workspace.tell_host, ENDS)
        if (limit := medium.limit(options)) is None:
            yield {}
            return
        paths = [disk.path for disk in workspace.attached.values()]
        undo.enter_context(throttle.limited(paths, limit, workspace.runtime / "blkio"))
        yield medium.emulation(options)


def _disks(cell: Cell) -> list[tuple[Any, str]]:
    parsed = parsed_stack(cell.stack)
    return list(zip(parsed.each_medium_options(), parsed.slots(cell.slot), strict=True))
