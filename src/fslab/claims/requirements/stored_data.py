"""Stored data: what the tool wrote was stored, and not left out. Pure."""

from fslab.claims.requirements import Compared, Requirement

_NOT_STORED = frozenset({"zeros_only", "repeated_data"})


class StoredData(Requirement):
    """A file system that compresses unasked, under a tool that writes zeros or always the same buffer, stores nearly
    nothing and wins."""

    summary = "whether the data was stored"
    limit = 1.0

    def measure(self, compared: Compared) -> float | None:
        """Return 0 if a side did not store what the tool wrote, else 1."""
        return float(not any(_NOT_STORED & side.warnings for side in compared.sides))

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        """Return which file systems did not store it."""
        names = dict.fromkeys(side.cell.stack.name for side in compared.sides if _NOT_STORED & side.warnings)
        return f"the tool writes zeros or repeats its data, and {', '.join(names)} did not store all of it"

    def try_(self, compared: Compared) -> str | None:  # noqa: ARG002
        """Return None: mkfs or mount options decide."""
        return None

    def implied(self, compared: Compared) -> bool:
        """Return True: it is never left out."""
        return bool(compared.sides)
