"""The facts about the cells of one part of a claim, by which requirements judge. Values only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from fslab.cell import Cell
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
        """Whether a cell was measured in a guest."""
        return any(side.guest for side in self.sides)

    @property
    def slowest(self) -> tuple[CellFacts, ...]:
        """The slower cell of each workload: what it waited for bounds what the device can change."""
        by: dict[str, list[CellFacts]] = {}
        for side in self.sides:
            by.setdefault(side.cell.workload.name, []).append(side)
        return tuple(min(group, key=_goodness) for group in by.values())

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

    def worst(self, values: Iterable[float | None], *, largest: bool = False) -> float | None:
        """Return the smallest or the largest known value; None if none is known."""
        known = [each for each in values if each is not None]
        return (max if largest else min)(known) if known else None


def _goodness(side: CellFacts) -> float:
    value = side.value or 0.0
    return -value if side.metric.better is Direction.LOWER else value


def levers(cells: Sequence[Cell]) -> frozenset[Lever]:
    """Return what cells differ in."""
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
