"""Flushes: how often the device had to flush its cache, for each operation of the tool. Pure."""

from fslab.claims.requirements import CellFacts, Compared, Requirement


class Flushes(Requirement):
    """A run that flushes after each operation measures the flush. `flushes <= 0.1` (the default) excludes that;
    `flushes >= 0.5` requires it, where a publication's software flushed at each operation."""

    summary = "how often the disks were flushed"
    limit = 0.1
    at_least = False
    either = True
    by_software = True

    def measure(self, compared: Compared) -> float | None:
        """Return flushes by operation: the largest of all sides."""
        return compared.worst(map(_each, compared.sides), largest=True)

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        """Return both counts."""
        side = max(compared.sides, key=lambda side: _each(side) or 0.0)
        return f"{side.flushes:,.0f} flushes for {side.operations:,.0f} operations"

    def try_(self, compared: Compared) -> str | None:  # noqa: ARG002
        """Return None: the workload decides."""
        return None


def _each(side: CellFacts) -> float | None:
    return side.flushes / side.operations if side.flushes is not None and side.operations else None
