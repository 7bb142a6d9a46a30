"""Settings in which stacks differ, beside the file system and its options: possible causes, too. Pure."""

from collections.abc import Sequence
from typing import Any

from fslab.analysis.matching_cells import set_beside_options, set_for_machine
from fslab.cell import Cell, StackSpec, by_workload, shown
from fslab.errors import FslabError
from fslab.storage.parsed_stack import parsed_stack
from fslab.units import first_of

_SHOWN = 3
NOT_SET = "not set"


def differing(cells: Sequence[Cell]) -> dict[str, tuple[str, ...]]:
    """Return the settings of medium, layout, machine and tuning in which cells of one workload differ, with their
    values."""
    found: dict[str, dict[str, None]] = {}
    for alike in by_workload(cells):
        settings = [_settings(cell) for cell in alike]
        for name in dict.fromkeys(name for each in settings for name in each):
            values = dict.fromkeys(shown(each.get(name, NOT_SET)) for each in settings)
            if len(values) > 1:
                found[name] = found.get(name, {}) | values
    return {name: tuple(values) for name, values in found.items()}


def in_words(cells: Sequence[Cell]) -> str | None:
    """Return a sentence; None if they differ in no such setting."""
    found = (f"{name} ({first_of(values, _SHOWN)})" for name, values in differing(cells).items())
    told = ", ".join(found)
    return f"The stacks also differ in settings, each of which can be a cause: {told}." if told else None


def _settings(cell: Cell) -> dict[str, Any]:
    stack = cell.stack
    return {
        **set_beside_options(stack), **_disks(stack), **set_for_machine(stack), **cell.tuning, **stack.settings,
    }  # fmt: skip


def _disks(stack: StackSpec) -> dict[str, int]:
    """Return the number of disks, which layouts have by default, too. Unknown for what this fslab does not know."""
    try:
        return {"layout.disks": parsed_stack(stack).layout_options.model_dump().get("disks", 1)}
    except (FslabError, ValueError):
        return {}
