"""Stripes that mkfs was not told of: partial stripes are read, changed and written."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.cell import Geometry
from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Certainty, Statement
from fslab.explain.switch import Switch
from fslab.units import format_size


class StripeMisalignment(Mechanism):
    """On RAID 5 each partial write reads as well."""

    summary = "partial stripes"
    cause = "unaligned stripes"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return (
            seen.cell.stack.layout != "single"
            and seen.cell.stack.geometry is not Geometry.ALIGNED
            and writes(seen)
        )

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(geometry=Geometry.ALIGNED)

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        read = seen.figure("device_read_bytes", "bytes read from the disks by a workload that writes")
        written = seen.written_bytes
        if (
            read is not None
            and written
            and read.value > 0.2 * written
            and seen.value("read_amplification") is None
        ):
            yield self.said(
                seen,
                f"Writing {format_size(written)} read {format_size(read.value)} from the disks.",
                read,
                weight=1.0,
                certainty=Certainty.COINCIDES,
            )
