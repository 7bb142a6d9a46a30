"""Fixed cost: what does not grow with the amount of data is a small part of the time. Pure."""

from fslab.claims.requirements import Compared, Requirement


class FixedCost(Requirement):
    """A small file is found and opened for as long as a large one. Two sizes of the same workload show that time, as
    the part of a straight line that does not depend on the size."""

    summary = "how much of the time does not grow with the size: two sizes would show it"
    limit = 0.05
    at_least = False

    def measure(self, compared: Compared) -> float | None:
        """Return the largest share of all sides."""
        return compared.worst((side.fixed_share for side in compared.sides), largest=True)

    def words(self, compared: Compared, value: float) -> str:
        """Return the share, and of what."""
        side = max(compared.sides, key=lambda side: side.fixed_share or 0.0)
        where = f"{side.cell.workload.name} on {side.cell.stack.name}"
        return f"{value * 100:.0f} % of the time of {where} do not grow with the size"

    def try_(self, compared: Compared) -> str | None:  # noqa: ARG002
        """Return the option that restores the publication's amounts."""
        return "--scale 1"
