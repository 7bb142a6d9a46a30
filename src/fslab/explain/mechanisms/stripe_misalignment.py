"""Partial stripes: if mkfs does not know the stripe size, parts of stripes are read, changed and written."""

from collections.abc import Iterator

from fslab.cell import Geometry
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size


class StripeMisalignment(Mechanism):
    """On RAID 5, each partial write also causes reads."""

    summary = "partial-stripe writes"
    cause = "unaligned stripes"
    off = Switch(geometry=Geometry.ALIGNED)

    def applies(self, evidence: Evidence) -> bool:
        return (
            evidence.cell.stack.layout != "single"
            and evidence.cell.stack.geometry is not Geometry.ALIGNED
            and writes(evidence)
        )

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        read = evidence.figure("device_read_bytes", "bytes read from the disks by a workload that writes")
        written = evidence.written_bytes
        if (
            read is not None
            and written
            and read.value > 0.2 * written
            and evidence.value("read_amplification") is None
        ):
            yield self.explanation(
                evidence,
                f"Writing {format_size(written)} caused {format_size(read.value)} of reads from the disks.",
                read,
                weight=1.0,
                certainty=Certainty.COINCIDES,
            )
