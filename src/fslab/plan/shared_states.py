"""Finds the cells that begin with the same state (``fresh: block``), so that trials of a block can share it. Pure."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fslab import workloads
from fslab.cell import Cache, Cell, Fresh
from fslab.plan.model import Shared
from fslab.storage.parsed_stack import parsed_stack
from fslab.workloads import Commands

_JOB = workloads.Job(directory=Path("/work"), scratch=Path("/scratch"), seed=0)


def groups(cells: Iterable[Cell]) -> dict[str, Shared]:
    """Return the group of each cell that begins with the same state as another one: cell id → group.

    Cells with the same files share them. The others of the same stack share the empty file system.
    """
    cells = [cell for cell in cells if _is_copyable(cell)]
    found = _of_several({cell.id: _files_digest(cell) for cell in cells}, files=True)
    rest = {cell.id: _digest(_made(cell)) for cell in cells if cell.id not in found}
    return found | _of_several(rest, files=False)


def reports_of(cell: Cell) -> tuple[str, ...]:
    """Return the names of the reports that preparing the files of a cell writes."""
    return tuple(workloads.parsed(cell.workload).commands(_JOB).prepared or ())


def _is_copyable(cell: Cell) -> bool:
    stack, workload = parsed_stack(cell.stack), workloads.parsed_if_known(cell.workload)
    if cell.fresh is not Fresh.BLOCK or cell.stack.layout != "single" or workload is None:
        return False
    drives_disk = workloads.REGISTRY.get(cell.workload.tool).drives_disk
    made = stack.filesystem is not None and stack.filesystem.mounted
    return made and not drives_disk and stack.medium.copyable(stack.medium_options)


def _files_digest(cell: Cell) -> str | None:
    """Return a digest of what a cell's files depend on, apart from the seed; None if they cannot be copied."""
    commands: Commands = workloads.parsed(cell.workload).commands(_JOB)
    if cell.cache is not Cache.COLD or commands.prepared is None or not commands.prepare:
        return None
    stack = cell.stack.model_dump(mode="json")
    files = {"prepare": commands.prepare, "prepared": commands.prepared, "inputs": dict(commands.inputs)}
    return _digest({**_made(cell), "stack": stack, **files})


def _made(cell: Cell) -> dict[str, Any]:
    """Return what an empty file system of a cell depends on: not the name of its stack, and not how it is mounted.

    In slices, all stacks are mounted at once: each has its own file system, because two with one UUID are an error.
    """
    alone = {"name", "mount_options"} if cell.slice_s is None else set[str]()
    return {"stack": cell.stack.model_dump(mode="json", exclude=alone), "tuning": cell.tuning}


def _digest(made: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(made, sort_keys=True).encode(), digest_size=6).hexdigest()


def _of_several(digests: Mapping[str, str | None], *, files: bool) -> dict[str, Shared]:
    sizes = Counter(digests.values())
    return {
        cell: Shared(group=digest, files=files)
        for cell, digest in digests.items()
        if digest is not None and sizes[digest] > 1
    }
