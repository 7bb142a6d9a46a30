"""Larger than memory: the files do not fit in the page cache. Pure."""

from fslab.claims.requirements import CellFacts, Compared, Requirement
from fslab.units import format_size


class LargerThanMemory(Requirement):
    """What fits in memory is read from there, and its writes can be put off."""

    summary = "how large the files or the memory were"
    limit = 1.0

    def measure(self, compared: Compared) -> float | None:
        """Return the size of the files by that of the memory."""
        return compared.worst(map(_times, compared.sides))

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        """Return both sizes."""
        side = min(compared.sides, key=lambda side: found if (found := _times(side)) is not None else 1.0)
        return (
            f"files of {format_size(side.working_set_bytes or 0)} fit in memory "
            f"({format_size(side.memory_bytes or 0)})"
        )

    def try_(self, compared: Compared) -> str | None:  # noqa: ARG002
        """Return the option that restores the publication's amounts."""
        return "--scale 1"


def _times(side: CellFacts) -> float | None:
    if side.working_set_bytes is None or not side.memory_bytes:
        return None
    return side.working_set_bytes / side.memory_bytes
