"""Requirements of the disks: the tool waited for them, seldom flushed, and its data came from or reached them. Pure."""

from fslab.claims.requirements import HALF, CellFacts, Compared, Lever, Requirement, SideRequirement
from fslab.units import Unit, format_size

_NOT_STORED = frozenset({"zeros_only", "repeated_data"})


class Flushes(SideRequirement):
    """A run that flushes after each operation measures the flush. `flushes <= 0.1` (the default) excludes that;
    `flushes >= 0.5` requires it, where a publication's software flushed at each operation."""

    summary = "how often the disks were flushed"
    short = "another number of flushes"
    limit = 0.1
    remedy = None  # the workload decides
    at_least = False
    either = True
    by_software = True

    def of_side(self, side: CellFacts) -> float | None:
        """Return flushes by operation. Of a part that is too short for counting, the most that it can have had, if that
        is within the limit."""
        if not side.operations:
            return None
        if side.flushes is None and side.run_flushes is not None:
            most = side.run_flushes / side.operations
            return most if most <= self.limit else None
        return None if side.flushes is None else side.flushes / side.operations

    def side_words(self, side: CellFacts) -> str:
        counted = f"at most {side.run_flushes:,.0f}" if side.flushes is None else f"{side.flushes:,.0f}"
        return f"{counted} flushes for {side.operations:,.0f} operations"


class FromDisk(SideRequirement):
    """Of a bandwidth, half of the bytes. Of other figures, anything at all."""

    summary = "whether the data came from the disks"
    short = "data not from the disks"
    limit = HALF
    by_software = True

    def of_side(self, side: CellFacts) -> float | None:
        """Return the share of what the tool did that came from the device or reached it."""
        if side.foreseen_cached or side.device_bytes is None:
            return 0.0 if side.foreseen_cached else None
        if not _of_bytes(side):
            return 0.0 if side.at_rest else 1.0
        return side.device_bytes / side.amount if side.amount else None

    def side_words(self, side: CellFacts) -> str:
        if side.foreseen_cached:
            return _cached_words(side)
        moved = f" of {format_size(side.amount)}" if _of_bytes(side) and side.amount else ""
        told = f"{format_size(side.device_bytes or 0)}{moved}"
        return f"only {told} came from the disks or reached them: the rest is the page cache's"


class StoredData(Requirement):
    """A file system that compresses unasked, under a tool that writes zeros or always the same buffer, stores nearly
    nothing and wins."""

    summary = "whether the data was stored"
    short = "zeros that were not stored"
    limit = 1.0
    remedy = None  # options of mkfs or mount decide

    def measure(self, compared: Compared) -> float | None:
        return float(not any(_NOT_STORED & side.warnings for side in compared.sides))

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        names = dict.fromkeys(side.cell.stack.name for side in compared.sides if _NOT_STORED & side.warnings)
        return f"the tool writes zeros or repeats its data, and {', '.join(names)} did not store all of it"

    def implied(self, compared: Compared) -> bool:
        return bool(compared.sides)


class Wait(Requirement):
    """With w of the slower cell's time spent waiting, an infinitely fast device would make it 1/(1 − w) times as fast.

    What differs in its disks only, or what the disks bounded in the publication, is not tested by a run that hardly
    waited for them. Nothing has to wait if it is claimed that disks do not matter, and they had nothing to do.
    """

    summary = "how long the disks were waited for"
    short = "the disks were waited for too little"
    limit = HALF
    by_software = True

    def measure(self, compared: Compared) -> float | None:
        if compared.foreseen_cached:
            return 0.0
        return 1.0 if compared.needs_no_disk else compared.wait

    def words(self, compared: Compared, value: float) -> str:
        if compared.foreseen_cached:
            return _cached_words(compared.foreseen_cached)
        return (
            f"the disks were waited for {value * 100:.0f} % of the time, so they can change this by at most "
            f"{1 / (1 - value):.2f} ×"
        )

    def implied(self, compared: Compared) -> bool:
        return Lever.DISKS in compared.levers


def _cached_words(side: CellFacts) -> str:
    return (
        f"files of {format_size(side.working_set_bytes or 0)} are read back from memory "
        f"({format_size(side.memory_bytes or 0)})"
    )


def _of_bytes(side: CellFacts) -> bool:
    return side.metric.unit is Unit.BYTES_PER_SECOND
