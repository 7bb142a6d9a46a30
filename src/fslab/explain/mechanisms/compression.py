"""Transparent compression: btrfs(5) "compress"; f2fs and bcachefs have mount options of similar names."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch

_OFF = Switch(mount=("compress=none",), instead=("compress-force",))


class DataCompression(Mechanism):
    """Fewer bytes reach the device, at the cost of CPU time."""

    summary = "data is compressed"
    cause = "compression"

    def applies(self, evidence: Evidence) -> bool:
        return evidence.compresses

    def switch(self, evidence: Evidence) -> Switch | None:
        return _OFF if evidence.filesystem == "btrfs" else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if amplified is not None and amplified.value < 0.9:
            zeros = ", and the tool writes hardly anything but zeros" if evidence.zeros else ""
            yield self.explanation(
                evidence,
                f"Compression: the device received {amplified.value:.2f} bytes for each byte written{zeros}.",
                amplified,
                weight=1 / amplified.value,
            )
