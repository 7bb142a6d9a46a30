"""Garbage collection of an SSD: valid pages of a block are copied before it is erased (Desnoyers, SYSTOR 2012)."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import NOTICEABLE, Mechanism
from fslab.explain.statement import Explanation
from fslab.units import format_size


class FlashCollection(Mechanism):
    """Only the model of a virtual SSD reports the bytes written to its flash."""

    summary = "the SSD writes more to its flash than the host writes to it"
    cause = "garbage collection of the SSD"

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        ratio = evidence.figure("device_write_amplification", "flash bytes per byte written by the host")
        flash = evidence.figure("flash_written_bytes", "written to the flash")
        if ratio is None or flash is None or ratio.value < NOTICEABLE:
            return
        yield self.explanation(
            evidence,
            f"The SSD wrote {format_size(flash.value)} to its flash, {ratio.value:.2f} bytes for each byte that the "
            "host wrote.",
            ratio,
            flash,
            evidence.figure("ssd_years_at_this_rate", "years to the rated endurance at this rate"),
            weight=ratio.value - 1,
            refuted_by="equally slow on an SSD with more over-provisioning, or on an empty one (steady: false)",
        )
