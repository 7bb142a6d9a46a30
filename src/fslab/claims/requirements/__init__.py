"""The interface of requirements: what must be true of the cells that decide a claim. One file per subject.

Figures answer the question of a publication only where the same thing bounds them. A requirement is pure: it judges
facts of trials, and reads nothing.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

from fslab.cell import Cell, grouped
from fslab.claims.model import Unmet
from fslab.errors import UsageError
from fslab.registry import Registry
from fslab.trial_record import Metric
from fslab.units import Direction, Unit
from fslab.workloads import traits_of

_NOTHING_BYTES = 1 << 20  # metadata that is written by the way
HALF = 0.5


class Lever(StrEnum):
    """What the compared cells differ in. ``cpu``: the claim is about CPU time, whatever they differ in."""

    FILESYSTEM = "filesystem"
    DISKS = "disks"
    OPTIONS = "options"
    THREADS = "threads"
    WORK = "work"
    CPU = "cpu"


@dataclass(frozen=True, kw_only=True, slots=True)
class CellFacts:
    """One figure of a part: its ``value``, and facts of its cell. Medians over its usable trials; None: unknown.

    ``span``: the ends of the interval of ``value``; None of fewer than six trials.
    ``wait``: share of the time in which the tool waited for its device, of the time that it ran or waited.
    ``seconds``, ``read_bytes``, ``written_bytes``, ``flushes``: of the part of the run that the figure is about, at the
    device. ``run_flushes``: of the whole run, at most so many of a part that is too short for its own to be counted.
    ``reads_back``: it reads through the page cache what the run itself has written. ``printed``: what the
    publication prints for it. ``threads``: how many work at once. ``emulated``: no instruction, or no system call,
    costs what it costs natively. ``options``: options in effect, equal for cells in which they have the same effect.
    ``warnings``: kinds of warnings. ``checksum``: how the file system computes
    checksums of data. ``fixed_share``: share of the time that does not grow with the amount of data.
    """

    cell: Cell
    metric: Metric
    value: float | None = None
    span: tuple[float, float] | None = None
    printed: tuple[float, ...] = ()
    wait: float | None = None
    seconds: float | None = None
    read_bytes: float | None = None
    written_bytes: float | None = None
    flushes: float | None = None
    run_flushes: float | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    emulated: bool = False
    guest: bool = False
    threads: int = 1
    working_set_bytes: int | None = None
    reads_back: bool = False
    request_bytes: int | None = None
    options: tuple[str, ...] | None = None
    warnings: frozenset[str] = frozenset()
    checksum: str | None = None
    fixed_share: float | None = None

    @property
    def amount(self) -> float | None:
        """What the tool did in this part, in bytes or operations; None if the figure is not a rate."""
        rates = {Unit.BYTES_PER_SECOND, Unit.IOPS, Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND}
        if self.value is None or self.seconds is None or self.metric.unit not in rates:
            return None
        return self.value * self.seconds

    @property
    def operations(self) -> float | None:
        """How many operations the tool did in this part; of a bandwidth, how many requests."""
        if self.metric.unit is not Unit.BYTES_PER_SECOND or self.amount is None:
            return self.amount
        return self.amount / self.request_bytes if self.request_bytes else None

    @property
    def device_bytes(self) -> float | None:
        """What went to the device or came from it; for a figure of only reads or writes, only that."""
        name = self.metric.name
        if "read" in name and "write" not in name:
            return self.read_bytes
        if "write" in name and "read" not in name:
            return self.written_bytes
        both = (self.read_bytes, self.written_bytes)
        return None if None in both else sum(one or 0.0 for one in both)

    @property
    def foreseen_cached(self) -> bool:
        """Whether, before anything is measured, it is known that this is read from the page cache."""
        reads = "read" in self.metric.name and "write" not in self.metric.name
        if self.value is not None or not (reads and self.reads_back):
            return False
        return (self.working_set_bytes or 0) < (self.memory_bytes or 0)

    @property
    def at_rest(self) -> bool:
        """Whether the device had nothing to do."""
        both = (self.read_bytes, self.written_bytes)
        return None not in both and sum(one or 0.0 for one in both) < _NOTHING_BYTES


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The cells of one part. ``tie``: it is claimed that they hardly differ. ``of_figure``: the claim is about a figure
    and not about a ratio. ``lever``: as the claim sets it."""

    sides: Sequence[CellFacts]
    tie: bool = False
    of_figure: bool = False
    lever: Lever | None = None

    @cached_property
    def levers(self) -> frozenset[Lever]:
        """What the cells differ in, unless the claim sets it."""
        return frozenset({self.lever}) if self.lever else levers([side.cell for side in self.sides])

    @property
    def in_guest(self) -> bool:
        return any(side.guest for side in self.sides)

    @property
    def slowest(self) -> tuple[CellFacts, ...]:
        """The slower cell of each workload: what it waited for bounds what the device can change."""

        def goodness(side: CellFacts) -> float:
            return (side.value or 0.0) * (-1 if side.metric.better is Direction.LOWER else 1)

        groups = grouped(self.sides, lambda side: side.cell.workload.name)
        return tuple(min(group, key=goodness) for group in groups.values())

    @property
    def wait(self) -> float | None:
        """The smallest ``CellFacts.wait`` of the slower cells; None if one is unknown."""
        found = [side.wait for side in self.slowest]
        known = [each for each in found if each is not None]
        return min(known) if known and len(known) == len(found) else None

    @property
    def needs_no_disk(self) -> bool:
        """Whether cells that differ in their disks are claimed to be alike, and their disks had nothing to do."""
        return self.tie and self.levers == {Lever.DISKS} and all(side.at_rest for side in self.sides)

    @property
    def foreseen_cached(self) -> CellFacts | None:
        """The first cell that will be read from the page cache; None without any, or if they are measured."""
        return next((side for side in self.sides if side.foreseen_cached), None)


def levers(cells: Sequence[Cell]) -> frozenset[Lever]:
    first, *others = cells
    return frozenset(lever for cell in others for lever in _between(first, cell))


def _between(a: Cell, b: Cell) -> set[Lever]:
    one, other, found = a.stack, b.stack, set[Lever]()
    if one.filesystem != other.filesystem:
        found.add(Lever.FILESYSTEM)
    if (one.medium, one.layout, one.layout_options) != (other.medium, other.layout, other.layout_options):
        found.add(Lever.DISKS)
    mounted = one.filesystem == other.filesystem and _options(a) != _options(b)
    if mounted:
        found.add(Lever.OPTIONS)
    told = (a.workload.parameters.items(), b.workload.parameters.items())
    differing = {key for key, _ in told[0] ^ told[1]}
    threads = traits_of(a.workload).parallel != traits_of(b.workload).parallel
    if threads:
        found.add(Lever.THREADS)
    if len(differing) > threads or a.workload.tool != b.workload.tool:  # one key sets the number of threads
        found.add(Lever.WORK)
    return found


def _options(cell: Cell) -> tuple[object, ...]:
    return cell.stack.mkfs_options, cell.stack.mounted_with


__all__ = ["REGISTRY", "CellFacts", "Compared", "Lever", "Requirement"]


ON_HOST = "--on host"


class Requirement(ABC):
    """One requirement: a number that must be at least or at most ``limit``.

    ``name`` is that of the class, unless it sets another. ``at_least``: the number must not be smaller, else not
    larger; a claim can set the limit, and the sense of ``either``. ``summary``: what is to be known, as in "it is
    unknown how …". ``short``: why it is not met, in a table. ``remedy``: the option of ``fslab run`` with which it may
    be met. ``by_software``: what the software does decides whether it is met, and not only machine and amounts.
    ``certain``: the stacks alone decide, whatever a run shows; it is told first.
    """

    name: str
    summary: ClassVar[str]
    short: ClassVar[str]
    limit: ClassVar[float]
    at_least: ClassVar[bool] = True
    either: ClassVar[bool] = False
    remedy: ClassVar[str | None] = ON_HOST
    by_software: ClassVar[bool] = False
    certain: ClassVar[bool] = False

    @abstractmethod
    def measure(self, compared: Compared) -> float | None:
        """Return the number for the cells of a part; None if it is unknown. Pure."""

    @abstractmethod
    def words(self, compared: Compared, value: float) -> str:
        """Return why the requirement is not met, as a clause without a full stop."""

    def implied(self, compared: Compared) -> bool:  # noqa: ARG002
        """Return whether these cells must meet it although the claim does not say so; unknown is accepted."""
        return False

    def try_(self, compared: Compared) -> str | None:
        """Return the remedy, if it is one for these cells."""
        return self.remedy if self.remedy != ON_HOST or compared.in_guest else None

    def unmet(
        self, compared: Compared, *, limit: float | None = None, at_least: bool | None = None, declared: bool
    ) -> Unmet | None:
        """Return why the cells do not meet it; None if they do. ``limit``, ``at_least``: as the claim sets them."""
        value = self.measure(compared)
        least = self.at_least if at_least is None else at_least
        wanted = self.limit if limit is None else limit
        if value is None:
            if not declared:
                return None
        elif value >= wanted if least else value <= wanted:
            return None
        return Unmet(
            requirement=self.name,
            what=f"it is unknown {self.summary}" if value is None else self.words(compared, value),
            try_=self.try_(compared),
            by_software=self.by_software and value is not None,
        )


class SideRequirement(Requirement):
    """A requirement of each cell: the worst one decides. Cells of which the number is unknown do not count."""

    @abstractmethod
    def of_side(self, side: CellFacts) -> float | None:
        """Return the number for one cell; None if it is unknown. Pure."""

    @abstractmethod
    def side_words(self, side: CellFacts) -> str:
        """Return why this cell does not meet it, as a clause without a full stop."""

    def _worst(self, compared: Compared) -> tuple[float, CellFacts] | None:
        found = [(value, side) for side in compared.sides if (value := self.of_side(side)) is not None]
        return (min if self.at_least else max)(found, key=lambda each: each[0], default=None)

    def measure(self, compared: Compared) -> float | None:
        worst = self._worst(compared)
        return worst and worst[0]

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        worst = self._worst(compared)
        return self.side_words(worst[1]) if worst else ""


REGISTRY: Registry[Requirement] = Registry("requirement", __name__, Requirement, by_subject=True)


NONE = "none"
_WRITTEN = re.compile(
    r"(?P<name>[a-z][a-z-]*)(?:\s*(?P<op>>=|<=)\s*(?P<number>\d+(?:\.\d+)?)(?P<percent>\s*%)?)?"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """A requirement as a claim writes it. ``limit``, ``at_least``: None for those of the rule."""

    name: str
    limit: float | None = None
    at_least: bool | None = None


def demand(text: str) -> Demand:
    """Read one requirement. Raises ValueError with what is wrong: its form, its name or its sense."""
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a requirement: write a name, or a name and a limit: wait >= 0.5")
    try:
        rule = REGISTRY.get(match["name"])
    except UsageError as error:
        raise ValueError(f"{error.what} — {error.hint}") from error
    if match["op"] is None:
        return Demand(name=rule.name)
    at_least = match["op"] == ">="
    if at_least is not rule.at_least and not rule.either:
        raise ValueError(f"'{rule.name}' takes '{'>=' if rule.at_least else '<='}', not '{match['op']}'")
    limit = float(match["number"]) / (100 if match["percent"] else 1)
    return Demand(name=rule.name, limit=limit, at_least=at_least)


def demands(requires: Sequence[str]) -> tuple[Demand, ...]:
    """Return the requirements that a claim states, without the word ``none``."""
    return tuple(demand(text) for text in requires if text != NONE)
