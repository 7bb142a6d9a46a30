"""CPUs: there are as many as threads that work at once. Pure."""

from fslab.claims.requirements import Compared, Requirement


class Cpus(Requirement):
    """Threads that share a CPU overlap in waiting only: what more of them bring depends on the CPUs."""

    summary = "how many CPUs there were"
    limit = 1.0

    def measure(self, compared: Compared) -> float | None:
        """Return CPUs by thread, of the side with the fewest."""
        return compared.worst(side.cpus / side.threads if side.cpus else None for side in compared.sides)

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        """Return both numbers."""
        side = min(compared.sides, key=lambda side: (side.cpus or side.threads) / side.threads)
        return f"{side.threads} threads shared {side.cpus} CPU{'s' * (side.cpus != 1)}"

    def implied(self, compared: Compared) -> bool:
        """Return whether several threads worked at once."""
        return any(side.threads > 1 for side in compared.sides)
