"""Finds the partner of each cell of one set of results in another set, and the differences of the two cells. Pure."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fslab.cell import Cell, MachineSpec, Scalar, StackSpec, shown
from fslab.errors import UsageError
from fslab.machine import facts
from fslab.machine.differences import Difference, between
from fslab.machine.fact import FactGroup
from fslab.units import first_of

Key = Callable[[Cell], Hashable]
PLACES = frozenset({"path", "image", "directory"})
LINES = 3


class MatchedBy(StrEnum):
    """What partners have in common besides workload and cache.

    ``stack``: the stack, by content or else by name. ``machine``: the stack without the machine. ``workload``: nothing
    else, because two stacks are compared.
    """

    STACK = "stack"
    MACHINE = "machine"
    WORKLOAD = "workload"


@dataclass(frozen=True, kw_only=True, slots=True)
class Partners:
    """Two cells that are compared, and the differences between them that should not exist."""

    a: Cell
    b: Cell
    differences: tuple[Difference, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matched:
    """Partners in the order of A, and cells without a partner."""

    partners: tuple[Partners, ...]
    only_a: tuple[Cell, ...]
    only_b: tuple[Cell, ...]


def match(a: Iterable[Cell], b: Iterable[Cell], by: MatchedBy) -> Matched:
    """Return the partners: first cells with the same content, whatever their names, then cells with the same names."""
    left = {cell.id: cell for cell in a}
    right = {cell.id: cell for cell in b}
    partner: dict[str, Cell] = {}
    taken: set[str] = set()
    for key in _KEYS[by]:
        partner |= _paired(
            [cell for cell in left.values() if cell.id not in partner],
            [cell for cell in right.values() if cell.id not in taken],
            key,
        )
        taken = {cell.id for cell in partner.values()}
    return Matched(
        partners=tuple(
            Partners(a=cell, b=partner[name], differences=between_cells(cell, partner[name], by))
            for name, cell in left.items()
            if name in partner
        ),
        only_a=tuple(cell for name, cell in left.items() if name not in partner),
        only_b=tuple(cell for name, cell in right.items() if name not in taken),
    )


def chosen(cells: Sequence[Cell], name: str) -> list[Cell]:
    """Return the cells of the one stack with this name, or else with this file system.

    Raises UsageError if no stack matches or several stacks match.
    """
    found = [cell for cell in cells if cell.stack.name == name]
    found = found or [cell for cell in cells if cell.stack.filesystem == name]
    if not found:
        known = ", ".join(f"'{each}'" for each in dict.fromkeys(cell.stack.name for cell in cells))
        raise UsageError(f"no stack '{name}'", where="--stack", hint=f"known: {known}")
    stacks = list(dict.fromkeys(cell.stack.name for cell in found))
    if len(stacks) > 1:
        raise UsageError(
            f"'{name}' matches {len(stacks)} stacks",
            where="--stack",
            hint=f"name one of: {', '.join(stacks)}",
        )
    return found


def _content(cell: Cell) -> Hashable:
    return cell.stack.content.model_dump_json()


def _without_machine(cell: Cell) -> Hashable:
    return cell.stack.content.model_copy(update={"machine": MachineSpec()}).model_dump_json()


def _stack_name(cell: Cell) -> Hashable:
    return cell.stack.name


def _work(cell: Cell) -> Hashable:
    return cell.workload.tool, repr(sorted(cell.workload.parameters.items())), cell.cache


def _workload_name(cell: Cell) -> Hashable:
    return cell.workload.name, cell.cache


def _both(stack: Key, workload: Key) -> Key:
    return lambda cell: (stack(cell), workload(cell))


# What partners have in common, the surest first: contents, for studies that use different names, then names.
_KEYS: dict[MatchedBy, list[Key]] = {
    MatchedBy.STACK: [
        lambda cell: cell.id,
        lambda cell: cell.content_id,
        _both(_content, _work),
        _both(_without_machine, _work),
        _both(_stack_name, _workload_name),
        _both(_without_machine, _workload_name),
        _both(_stack_name, _work),
    ],
    MatchedBy.MACHINE: [_both(_without_machine, _work), _both(_without_machine, _workload_name)],
    MatchedBy.WORKLOAD: [_work, _workload_name],
}


def _paired(left: Sequence[Cell], right: Sequence[Cell], key: Key) -> dict[str, Cell]:
    """Return the partners by id of the left cell: cells with the same key, which is unique on both sides."""
    counts = (Counter(map(key, left)), Counter(map(key, right)))
    by_key = {key(cell): cell for cell in right}
    return {cell.id: by_key[key(cell)] for cell in left if all(count[key(cell)] == 1 for count in counts)}


def between_cells(a: Cell, b: Cell, by: MatchedBy) -> tuple[Difference, ...]:
    """Return the attributes in which two cells differ."""
    left, right = _parts(a, by), _parts(b, by)
    ours, theirs = a.workload.parameters, b.workload.parameters
    for name in ours.keys() & theirs.keys():
        told = _apart(ours[name], theirs[name])
        for parts, text in zip((left, right), told, strict=True):
            parts[FactGroup.STUDY][f"parameters.{name}"] = text
    return tuple(each for group in left for each in between(group, left[group], right[group]))


def _apart(a: Scalar, b: Scalar) -> tuple[str | None, str | None]:
    """Return two values of a parameter as text; of two texts of many lines, the lines that the other one lacks."""
    whole = shown(a), shown(b)
    if not (isinstance(a, str) and isinstance(b, str) and "\n" in a.strip() and "\n" in b.strip()):
        return whole
    lines = [each.strip() for each in a.splitlines()], [each.strip() for each in b.splitlines()]
    counts = [Counter(filter(None, each)) for each in lines]
    told = _lines(counts[0] - counts[1]), _lines(counts[1] - counts[0])
    return told if told[0] != told[1] else whole


def _lines(lines: Counter[str]) -> str | None:
    return first_of([shown(each) for each in lines.elements()], LINES, ";") if lines else None


def _parts(cell: Cell, by: MatchedBy) -> dict[FactGroup, dict[str, Any]]:
    """Return the attributes of a cell by group of facts. A difference in an attribute belongs to its group."""
    covered = facts.tuned_by()
    study: dict[str, Any] = {
        "tool": cell.workload.tool,
        **{f"parameters.{name}": shown(value) for name, value in sorted(cell.workload.parameters.items())},
        "cache": cell.cache.value,
        "fresh": cell.fresh.value,
        **{f"tuning.{name}": value for name, value in cell.tuning.items() if name not in covered},
    }
    parts = {FactGroup.STUDY: study, FactGroup.DEVICE: {}, FactGroup.KERNEL: {}}
    if by is MatchedBy.WORKLOAD:
        return parts
    stack = cell.stack
    study |= {
        "filesystem": stack.filesystem,
        "mkfs_options": stack.mkfs_options,
        "mount_options": stack.mount_options,
    }
    for name, value in (set_beside_options(stack) | stack.settings).items():
        parts[FactGroup.DEVICE if name.removeprefix("medium.") in PLACES else FactGroup.STUDY][name] = value
    if by is MatchedBy.STACK:
        parts[FactGroup.KERNEL] |= set_for_machine(stack)
    return parts


def set_beside_options(stack: StackSpec) -> dict[str, Any]:
    """Return the medium, the layout and their options, each with its value."""
    return {
        "medium": stack.medium.type,
        "layout": stack.striped_by,
        "geometry": stack.geometry.value,
        **{f"layout.{name}": value for name, value in sorted(stack.layout_options.items())},
        **{f"medium.{name}": value for name, value in sorted(stack.medium.options.items())},
    }


def set_for_machine(stack: StackSpec) -> dict[str, str]:
    """Return what a stack sets for the machine that it runs on, such as its memory."""
    return {f"machine.{name}": value for name, value in stack.machine.model_dump(exclude_none=True).items()}
