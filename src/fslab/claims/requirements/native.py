"""Native: the CPU costs what it costs on hardware, or the disks decide. Pure."""

from fslab.claims.requirements import Compared, Requirement
from fslab.claims.requirements._facts import HALF
from fslab.units import Unit

_COUNTS = frozenset({Unit.COUNT, Unit.BYTES, Unit.RATIO})


class Native(Requirement):
    """In User-Mode Linux a system call costs a hundred times as much, and an emulated processor costs differently for
    each instruction: even an order can be reversed. Only what the disks bound can be compared there, and counts."""

    summary = "whether the disks or the guest's CPU bounded this"
    limit = HALF

    def measure(self, compared: Compared) -> float | None:
        """Return the share of time that the slower cell waited for its disks; 1 where the CPU does not matter."""
        counts = all(side.metric.unit in _COUNTS for side in compared.sides)
        if counts or compared.needs_no_disk or not any(side.emulated for side in compared.sides):
            return 1.0
        return 0.0 if compared.wait is None else compared.wait

    def words(self, compared: Compared, value: float) -> str:
        """Return what bounded the figures."""
        if compared.wait is None:
            return "measured in a guest, and how long the disks were waited for is unknown"
        return (
            f"the CPU of a guest decides this: the disks were waited for {value * 100:.0f} % of the time, and system "
            "calls cost many times as much as natively"
        )

    def implied(self, compared: Compared) -> bool:
        """Return True: it is never left out."""
        return bool(compared.sides)
