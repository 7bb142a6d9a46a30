"""Finds the cells that begin with the same files (``fresh: block``), so that trials of a block can share them. Pure."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from fslab import workloads
from fslab.cell import Cache, Cell, Fresh
from fslab.storage.parsed_stack import parsed_stack

_JOB = workloads.Job(directory=Path("/work"), scratch=Path("/scratch"), seed=0)


def groups(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the group of each cell that begins with the same files as another one: cell id → digest."""
    found = {cell.id: digest for cell in cells if (digest := _digest(cell)) is not None}
    sizes = Counter(found.values())
    return {cell: group for cell, group in found.items() if sizes[group] > 1}


def reports_of(cell: Cell) -> tuple[str, ...]:
    """Return the names of the reports that preparing the files of a cell writes."""
    return tuple(workloads.parsed(cell.workload).commands(_JOB).prepared or ())


def _digest(cell: Cell) -> str | None:
    """Return a digest of what a cell's files depend on, apart from the seed; None if they cannot be copied."""
    if cell.fresh is not Fresh.BLOCK or cell.cache is not Cache.COLD or cell.stack.layout != "single":
        return None
    stack, workload = parsed_stack(cell.stack), workloads.parsed_if_known(cell.workload)
    if workload is None or not stack.medium.copyable(stack.medium_options):
        return None
    commands = workload.commands(_JOB)
    if commands.prepared is None or not commands.prepare:
        return None
    inputs = [cell.stack.model_dump(mode="json"), commands.prepare, commands.prepared, cell.tuning]
    text = json.dumps([*inputs, dict(commands.inputs)], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
