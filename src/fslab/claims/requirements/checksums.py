"""Checksums: the processor accelerates those of the file system. Pure."""

from fslab.claims.requirements import CellFacts, Compared, Requirement

_SOFTWARE = "generic"  # as in crc32c-generic, which btrfs names in sysfs
_NONE = {"nodatasum", "nodatacow"}  # mount options without checksums of data
# CRC32C by tables takes about 1 ns for each byte, with the instruction of SSE 4.2 a twentieth (lib/crc32test.c).
_S_PER_BYTE = 1e-9


class AcceleratedChecksums(Requirement):
    """btrfs computes a checksum of all data. A processor since 2008 does it by an instruction, User-Mode Linux by
    tables: the share of the time is that of the bytes at the device."""

    summary = "how checksums were computed"
    limit = 0.05
    at_least = False

    def measure(self, compared: Compared) -> float | None:
        """Return the share of the time that checksums took in software; 0 if they are accelerated."""
        return compared.worst(map(_share, compared.sides), largest=True)

    def words(self, compared: Compared, value: float) -> str:
        """Return which file system paid for it."""
        side = max(compared.sides, key=lambda side: _share(side) or 0.0)
        return (
            f"{side.cell.stack.name} computed checksums by tables ({side.checksum}), about {value * 100:.0f} % of the "
            "time: a processor has an instruction for it"
        )

    def implied(self, compared: Compared) -> bool:
        """Return whether it is known how a side computed them."""
        return any(side.checksum for side in compared.sides)


def _share(side: CellFacts) -> float | None:
    if side.checksum is None or _SOFTWARE not in side.checksum or _NONE & {*(side.options or ())}:
        return 0.0 if side.checksum else None
    moved = (side.read_bytes or 0.0) + (side.written_bytes or 0.0)
    return moved * _S_PER_BYTE / side.seconds if side.seconds else None
