"""From disk: the bytes really went to the device or came from it. Pure."""

from fslab.claims.requirements import CellFacts, Compared, Requirement
from fslab.claims.requirements._facts import HALF
from fslab.units import Unit, format_size


class FromDisk(Requirement):
    """Of a bandwidth, half of the bytes. Of other figures, anything at all."""

    summary = "whether the data came from the disks"
    limit = HALF
    by_software = True

    def measure(self, compared: Compared) -> float | None:
        """Return the share of the side with the smallest share."""
        return compared.worst(map(_share, compared.sides))

    def words(self, compared: Compared, value: float) -> str:  # noqa: ARG002
        """Return what came from the device."""
        side = min(compared.sides, key=lambda side: found if (found := _share(side)) is not None else 1.0)
        moved = f" of {format_size(side.amount)}" if _of_bytes(side) and side.amount else ""
        told = f"{format_size(side.device_bytes or 0)}{moved}"
        return f"only {told} came from the disks or reached them: the rest is the page cache's"


def _of_bytes(side: CellFacts) -> bool:
    return side.metric.unit is Unit.BYTES_PER_SECOND


def _share(side: CellFacts) -> float | None:
    if side.device_bytes is None:
        return None
    if not _of_bytes(side):
        return 0.0 if side.at_rest else 1.0
    return side.device_bytes / side.amount if side.amount else None
