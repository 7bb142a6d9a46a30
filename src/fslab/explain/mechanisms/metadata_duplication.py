"""Two copies of all metadata on one device: the profile DUP in mkfs.btrfs(8)."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import NOTICEABLE, Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch


class MetadataDuplication(Mechanism):
    """Every write of trees and superblocks is done twice."""

    summary = "metadata is stored twice"
    cause = "the second copy of metadata"
    filesystems = frozenset({"btrfs"})
    unless = ("-m single",)
    off = Switch(mkfs="-m single")

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        copies = evidence.figure("btrfs_metadata_copies", "copies of metadata")
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if (
            copies is not None
            and amplified is not None
            and copies.value > 1.5
            and amplified.value > NOTICEABLE
        ):
            yield self.explanation(
                evidence,
                f"Metadata is stored {copies.value:.0f} times (DUP or RAID1); the device received "
                f"{amplified.value:.3g} bytes for each byte written.",
                amplified,
                copies,
                evidence.of_trace("traced_metadata_bytes", "metadata"),
                evidence.of_trace("traced_data_written_bytes", "data"),
                weight=amplified.value,
            )
