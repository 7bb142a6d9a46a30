"""Requirements of the machine: enough CPUs that cost what they cost on hardware, and files larger than memory. Pure."""

from fslab.claims.requirements import HALF, CellFacts, Compared, Requirement, SideRequirement
from fslab.units import Unit, format_size

_COUNTS = frozenset({Unit.COUNT, Unit.BYTES, Unit.RATIO})

_SOFTWARE = "generic"  # as in crc32c-generic, which btrfs names in sysfs

_NONE = {"nodatasum", "nodatacow"}  # mount options without checksums of data

# CRC32C by tables takes about 1 ns for each byte, with the instruction of SSE 4.2 a twentieth (lib/crc32test.c).
_S_PER_BYTE = 1e-9


class Native(Requirement):
    """In User-Mode Linux a system call costs a hundred times as much, and an emulated processor costs differently for
    each instruction: even an order can be reversed. Only what the disks bound can be compared there, and counts."""

    summary = "whether the disks or the guest's CPU bounded this"
    short = "a guest's CPU bounds it"
    limit = HALF

    def measure(self, compared: Compared) -> float | None:
        """Return the share of time that the slower cell waited for its disks; 1 where the CPU does not matter."""
        counts = all(side.metric.unit in _COUNTS for side in compared.sides)
        if counts or compared.needs_no_disk or not any(side.emulated for side in compared.sides):
            return 1.0
        return 0.0 if compared.wait is None else compared.wait

    def words(self, compared: Compared, value: float) -> str:
        if compared.wait is None:
            return "measured in a guest, and how long the disks were waited for is unknown"
        return (
            f"the CPU of a guest decides this: the disks were waited for {value * 100:.0f} % of the time, and system "
            "calls cost many times as much as natively"
        )

    def implied(self, compared: Compared) -> bool:
        return bool(compared.sides)


class Checksums(SideRequirement):
    """btrfs computes a checksum of all data. A processor since 2008 does it by an instruction, User-Mode Linux by
    tables: the share of the time is that of the bytes at the device."""

    summary = "how checksums were computed"
    short = "checksums without the CPU's instruction"
    limit = 0.05
    at_least = False

    def of_side(self, side: CellFacts) -> float | None:
        """Return the share of the time that checksums took in software; 0 if they are accelerated."""
        if side.checksum is None or _SOFTWARE not in side.checksum or _NONE & {*(side.options or ())}:
            return 0.0 if side.checksum else None
        moved = (side.read_bytes or 0.0) + (side.written_bytes or 0.0)
        return moved * _S_PER_BYTE / side.seconds if side.seconds else None

    def side_words(self, side: CellFacts) -> str:
        share = self.of_side(side) or 0.0
        return (
            f"{side.cell.stack.name} computed checksums by tables ({side.checksum}), about {share * 100:.0f} % of the "
            "time: a processor has an instruction for it"
        )

    def implied(self, compared: Compared) -> bool:
        return any(side.checksum for side in compared.sides)


class LargerThanMemory(SideRequirement):
    """What fits in memory is read from there, and its writes can be put off."""

    summary = "how large the files or the memory were"
    short = "files fit in memory"
    limit = 1.0
    remedy = "--scale 1"  # restores the publication's amounts

    def of_side(self, side: CellFacts) -> float | None:
        if side.working_set_bytes is None or not side.memory_bytes:
            return None
        return side.working_set_bytes / side.memory_bytes

    def side_words(self, side: CellFacts) -> str:
        return (
            f"files of {format_size(side.working_set_bytes or 0)} fit in memory "
            f"({format_size(side.memory_bytes or 0)})"
        )


class Cpus(SideRequirement):
    """Threads that share a CPU overlap in waiting only: what more of them bring depends on the CPUs."""

    summary = "how many CPUs there were"
    short = "fewer CPUs than threads"
    limit = 1.0

    def of_side(self, side: CellFacts) -> float | None:
        return side.cpus / side.threads if side.cpus else None

    def side_words(self, side: CellFacts) -> str:
        return f"{side.threads} threads share {side.cpus} CPU{'s' * (side.cpus != 1)}"

    def implied(self, compared: Compared) -> bool:
        return any(side.threads > 1 for side in compared.sides)
