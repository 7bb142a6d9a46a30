"""Fragmentation: neighbouring parts of a file that are not neighbours on the device (FIEMAP)."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.workloads import Switchable


class Fragmentation(Mechanism):
    """Later sequential reads become random reads. This costs requests on flash, and seeks on hard disks."""

    summary = "the file is fragmented"
    cause = "fragmentation"
    alters = True

    def applies(self, evidence: Evidence) -> bool:
        return writes(evidence) and evidence.traits.few_files and evidence.filesystem != "btrfs"

    def switch(self, evidence: Evidence) -> Switch | None:
        in_place = evidence.traits.switches.get(Switchable.IN_PLACE)
        return Switch(parameters=in_place) if in_place else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        pieces = evidence.figure("file_pieces", "discontinuities")
        extents = evidence.figure("file_extents", "extents")
        if pieces is not None and pieces.value > 1000:
            yield self.explanation(
                evidence,
                f"The file is fragmented: {pieces.value:.0f} extents on the device.",
                pieces,
                extents,
                weight=0.5,
            )
