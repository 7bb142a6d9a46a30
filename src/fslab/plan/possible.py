"""Whether a cell is possible at all: what its workload needs, against what its file system declares. Pure.

What only the running kernel can tell is found out when the stack is built.
"""

from __future__ import annotations

from fslab.cell import Cell
from fslab.errors import UnsupportedError
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.workloads import parsed


def why_not(cell: Cell) -> str | None:
    """The reason why no trial of the cell can come off, None if nothing speaks against it."""
    if cell.stack.filesystem is None:
        return None
    filesystem = FILESYSTEMS.get(cell.stack.filesystem)
    if filesystem.refusal:
        return filesystem.refusal
    return filesystem.limits.why_not(parsed(cell.workload).needs())


def check(cell: Cell) -> None:
    """UnsupportedError for a cell that is not possible."""
    if why := why_not(cell):
        raise UnsupportedError(
            f"not possible: {why}",
            where=f"{cell.workload.name} on {cell.stack.name}",
            hint="leave this file system or this workload out ('workloads' of a stack)",
        )
