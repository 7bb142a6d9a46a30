"""Transparent compression of btrfs: btrfs(5), compress."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch


class BtrfsCompression(Mechanism):
    """Fewer bytes reach the device, at the cost of CPU time."""

    summary = "data is compressed"
    cause = "compression"
    off = Switch(mount=("compress=none",), instead=("compress-force",))

    def applies(self, evidence: Evidence) -> bool:
        return evidence.filesystem == "btrfs" and any(
            each.startswith("compress") for each in evidence.mount_options
        )

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if amplified is not None and amplified.value < 0.9:
            yield self.explanation(
                evidence,
                f"The device received {amplified.value:.2f} bytes for each byte written.",
                amplified,
                weight=1 / amplified.value,
            )
