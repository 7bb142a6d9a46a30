"""Garbage collection of an SSD: valid pages of a block are copied before it is erased (Desnoyers, SYSTOR 2012)."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import NOTICEABLE, Mechanism
from fslab.explain.statement import Explanation
from fslab.units import format_size


class FlashCollection(Mechanism):
    """Only the model of a virtual SSD tells what its flash was written."""

    summary = "an SSD writes more to its flash than it is given"
    cause = "garbage collection of the SSD"

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        ratio = evidence.figure("device_write_amplification", "flash bytes per byte given to the SSD")
        flash = evidence.figure("flash_written_bytes", "written to the flash")
        if ratio is None or flash is None or ratio.value < NOTICEABLE:
            return
        yield self.explanation(
            evidence,
            f"The SSD wrote {format_size(flash.value)} to its flash, {ratio.value:.2f} bytes for each "
            "that it was given.",
            ratio,
            flash,
            evidence.figure("ssd_years_at_this_rate", "years to the rated endurance at this rate"),
            weight=ratio.value - 1,
            refuted_by="the same rate on an SSD with more spare flash, or one that is not filled (steady: false)",
        )
