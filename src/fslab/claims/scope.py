"""Finds the cells of a study that the words of a claim mean.

A name of a stack stands for all stacks with this file system or this name that meet the conditions of the claim.
Workloads are found by name and pattern. Cells are compared only if they are equal in everything that the words leave
open (``align``). Pure.
"""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import ge, gt, le, lt

from fslab.cell import Cell, Scalar, as_written, grouped
from fslab.claims.language import EACH, Condition, Op, Term
from fslab.units import parse_size

MEMORY = "memory"
HOST, GUEST_MEMORY = "host", "1g"
Attributes = Mapping[str, Scalar | None]
# Attributes of the cell itself; all others are parameters of its tool or layout.
OWN = ("workload", "tool", "cache", "fresh", "medium", "layout", "filesystem", "mkfs_options", "mount_options",
       "geometry", "machine", "kernel")  # fmt: skip


def attributes(cell: Cell) -> dict[str, Scalar | None]:
    """Return all attributes of a cell that a claim can name. A layout with one device has ``disks`` 1."""
    stack = cell.stack
    return {
        "disks": 1,
        **cell.tuning,
        **stack.settings,
        **stack.layout_options,
        **cell.workload.parameters,
        "workload": cell.workload.name.partition("[")[0],
        "tool": cell.workload.tool,
        "cache": cell.cache.value,
        "fresh": cell.fresh.value,
        "medium": stack.medium.name,
        "layout": stack.layout,
        "filesystem": stack.filesystem,
        "mkfs_options": stack.mkfs_options,
        "mount_options": stack.mounted_with,
        "geometry": stack.geometry.value,
        "machine": stack.machine.type,
        "kernel": stack.machine.kernel,
    }


def kind(cell: Cell) -> str:
    """Return the kind of a stack: its file system, or its name if the file system is unknown."""
    return cell.stack.filesystem or cell.stack.name


def flags(cell: Cell) -> set[str]:
    """Return the bare words that are true of a cell: single options, layout, medium, and what the medium sets."""
    stack = cell.stack
    mount = stack.mounted_with
    mkfs = stack.mkfs_options
    medium = {
        stack.medium.name,
        *(f"{key}={as_written(value)}" for key, value in stack.medium.options.items()),
    }
    return {mount, *mount.split(","), *mkfs.split(), mkfs or "mkfs-defaults", stack.layout, *medium}


def measure(value: Scalar | None) -> float | None:
    """Return a value as a number, with sizes in bytes; None for values that have no order."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return float(parse_size(str(value)))
    except ValueError:
        return None


@lru_cache(maxsize=4096, typed=True)
def _plain(value: Scalar | None) -> object:
    number = measure(value)
    return number if number is not None else str(value).lower()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """One group of ``Scope.align``. ``joined``: the attributes in which it has to be equal to other groups.
    ``agreed``: those of them that groups before it have; ``cells``: by their values."""

    joined: Sequence[str]
    agreed: Sequence[str]
    cells: Mapping[tuple[object, ...], Sequence[Cell]]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The cells of a study or of a campaign, in the order of the plan.

    ``memory_bytes``: memory of the host (that of a guest is in its cells); None if unknown. ``lenient``: a comparison
    with unknown memory counts as met, so that a claim can be checked before there is a machine.
    """

    cells: tuple[Cell, ...]
    memory_bytes: int | None = None
    lenient: bool = False
    known: dict[int, Attributes] = field(default_factory=dict)
    plain: dict[int, dict[str, object]] = field(default_factory=dict)
    varying_by_kind: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Keyed by identity: a cell's own id is a digest that is slow to compute. The cells live as long as this object.
        for cell in self.cells:
            self.known[id(cell)] = attributes(cell)
            self.plain[id(cell)] = {key: _plain(value) for key, value in self.known[id(cell)].items()}

    def of(self, cell: Cell) -> Attributes:
        return self.known[id(cell)]

    @cached_property
    def stacks(self) -> list[str]:
        """All names that a claim can use for a stack."""
        return sorted({kind(cell) for cell in self.cells} | {cell.stack.name for cell in self.cells})

    @cached_property
    def workloads(self) -> list[str]:
        """All names of workloads, with and without their combination of parameters."""
        names = {cell.workload.name for cell in self.cells}
        return sorted(names | {name.partition("[")[0] for name in names})

    @cached_property
    def keys(self) -> list[str]:
        """All keys that a condition can name."""
        return sorted({key for cell in self.cells for key in self.of(cell)})

    def on(self, patterns: Sequence[str], among: Sequence[Cell] | None = None) -> list[Cell]:
        """Return the cells whose workload matches one of the patterns; all cells if there are no patterns."""
        cells = list(self.cells if among is None else among)
        if not patterns:
            return cells
        return [cell for cell in cells if any(workload_is(pattern, cell) for pattern in patterns)]

    def meets(self, cell: Cell, condition: Condition) -> bool:
        if condition.op is None:
            return condition.key in flags(cell)
        wanted: Scalar | None = condition.value
        if condition.value == MEMORY:
            wanted = self._memory(cell)
            if wanted is None:
                return self.lenient
        having = self.of(cell)
        if condition.key not in having:
            return condition.op is Op.EQUAL and f"{condition.key}={condition.value}" in flags(cell)
        return _compare(having[condition.key], condition.op, wanted)

    def _memory(self, cell: Cell) -> int | None:
        machine = cell.stack.machine
        if machine.type == HOST and machine.memory is None:
            return self.memory_bytes
        return parse_size(machine.memory or GUEST_MEMORY)

    def matching(self, term: Term, cells: Iterable[Cell], more: Sequence[Condition] = ()) -> list[Cell]:
        """Return the cells that a term means. Cells of a stack with exactly this name come first."""
        if term.workload is not None:
            cells = self.on([term.workload], list(cells))
        found = [
            cell
            for cell in cells
            if term.name in {EACH, kind(cell), cell.stack.name}
            and all(self.meets(cell, condition) for condition in (*term.conditions, *more))
        ]
        return sorted(found, key=lambda cell: cell.stack.name != term.name)

    def varying(self, cells: Sequence[Cell]) -> set[str]:
        """Return the attributes, except ``filesystem``, in which these cells differ."""
        having = [set(self.plain[id(cell)].items()) for cell in cells]
        if not having:
            return set()
        differing = having[0].union(*having) - having[0].intersection(*having)
        return {name for name, _ in differing} - {"filesystem"}

    def varying_of(self, of_kind: str) -> set[str]:
        """Return the attributes, except ``filesystem``, in which all cells of one kind of stack differ."""
        if of_kind not in self.varying_by_kind:
            cells = [cell for cell in self.cells if kind(cell) == of_kind]
            self.varying_by_kind[of_kind] = self.varying(cells)
        return self.varying_by_kind[of_kind]

    def at(self, cell: Cell, names: Iterable[str]) -> tuple[object, ...]:
        """Return the values of some attributes in a comparable form, in which equal sizes and numbers are equal."""
        having = self.plain[id(cell)]
        return tuple(having.get(name) for name in names)

    def distinguishing(self, groups: Sequence[Sequence[Cell]], given: Sequence[str] = ()) -> list[str]:
        """Return the attributes that distinguish the cells within each group, without those in ``given``.

        Attributes that the others determine are left out, names of workloads first: for ``dd-write-4k`` and
        ``dd-write-1m`` only ``bs`` remains.
        """
        found = sorted(
            {name for cells in groups for name in self.varying(cells)} - set(given),
            key=lambda name: (name != "workload", name in OWN, name),
        )

        def distinct(names: Sequence[str]) -> list[int]:
            return [len({self.at(cell, names) for cell in cells}) for cells in groups]

        for name in list(found):
            rest = [*(other for other in found if other != name), *given]
            if distinct(rest) == distinct([*found, *given]):
                found.remove(name)
        return found

    def align(self, groups: Sequence[Sequence[Cell]]) -> Iterator[tuple[Cell, ...]]:
        """Yield tuples of one cell per group that are equal in all attributes that vary within groups.

        If a group has a single value of an attribute that varies in other groups, the others take that value. If they
        do not have it, the single value is combined with all of theirs (one disk with stripes over two, three and
        four).
        """
        names, steps, known = self.distinguishing(groups), list[_Step](), set[str]()
        for number, cells in enumerate(groups):
            own = self._joined(number, groups, names)
            steps.append(self._step(cells, own, [name for name in own if name in known]))
            known.update(own)
        yield from self._join(steps, (), {})

    def _joined(self, number: int, groups: Sequence[Sequence[Cell]], names: Sequence[str]) -> list[str]:
        found = []
        for name in names:
            own = {self.at(cell, [name]) for cell in groups[number]}
            others = [{self.at(cell, [name]) for cell in cells} for cells in groups]
            wide = [values for values in others if len(values) > 1]
            if len(own) > 1 or all(own <= values for values in wide):
                found.append(name)
        return found

    def _step(self, cells: Sequence[Cell], joined: Sequence[str], agreed: Sequence[str]) -> _Step:
        # Of cells with the same values, the first: a later one is the same stack under another name.
        distinct = [alike[0] for alike in grouped(cells, lambda cell: self.at(cell, joined)).values()]
        found = grouped(distinct, lambda cell: self.at(cell, agreed))
        return _Step(joined=joined, agreed=agreed, cells=found)

    def _join(
        self, steps: Sequence[_Step], chosen: tuple[Cell, ...], values: Mapping[str, object]
    ) -> Iterator[tuple[Cell, ...]]:
        if len(chosen) == len(steps):
            yield chosen
            return
        step = steps[len(chosen)]
        for cell in step.cells.get(tuple(values[name] for name in step.agreed), ()):
            here = dict(zip(step.joined, self.at(cell, step.joined), strict=True))
            yield from self._join(steps, (*chosen, cell), {**values, **here})

    def series(
        self, cells: Sequence[Cell], keys: Sequence[str], *beside: Sequence[Cell]
    ) -> dict[tuple[object, ...], list[Cell]]:
        """Return groups of cells that differ only in ``keys``, each group in the order of their values.

        With ``beside``, the groups have names that also fit the series of these other cells.
        """
        grouped: dict[tuple[object, ...], list[Cell]] = {}
        names = self.distinguishing([cells, *beside], keys)
        for cell in cells:
            known = grouped.setdefault(self.at(cell, names), [])
            if self.at(cell, keys) not in [self.at(other, keys) for other in known]:
                known.append(cell)
        for group in grouped.values():
            values = [measure(self.of(cell).get(keys[0])) for cell in group]
            if len(keys) == 1 and None not in values:
                group.sort(key=lambda cell: measure(self.of(cell).get(keys[0])) or 0.0)
        return {name: group for name, group in grouped.items() if len(group) > 1}


def workload_is(pattern: str, cell: Cell) -> bool:
    """Return whether a pattern matches a cell's workload, by its name with or without the combination of parameters.

    ``*`` stands for any characters, ``?`` for one character.
    """
    return _means(pattern, cell.workload.name)


@lru_cache(maxsize=4096)
def _means(pattern: str, name: str) -> bool:
    return any(_compiled(pattern).fullmatch(each) for each in (name, name.partition("[")[0]))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Unlike ".*", a "*" of fnmatch is not tried again, so that many of them take no time without an end.
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))


def _compare(having: Scalar | None, op: Op, wanted: Scalar | None) -> bool:
    if op is Op.EQUAL:
        return _plain(having) == _plain(wanted)
    one, other = measure(having), measure(wanted)
    if one is None or other is None:
        return False
    return bool({Op.LESS: lt, Op.AT_MOST: le, Op.MORE: gt, Op.AT_LEAST: ge}[op](one, other))
