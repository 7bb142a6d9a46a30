"""Two copies of all metadata on one device: the profile DUP in mkfs.btrfs(8)."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import NOTICEABLE, Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch

_COPYING = frozenset({"btrfs-raid1", "md-raid1", "md-raid10", "md-raid5"})  # counters include copies of data


class MetadataDuplication(Mechanism):
    """Every write of trees and superblocks is done twice."""

    summary = "metadata is stored twice"
    cause = "the second copy of metadata"
    filesystems = frozenset({"btrfs"})
    unless = ("-m single",)
    off = Switch(mkfs="-m single")

    def switch(self, evidence: Evidence) -> Switch | None:
        """Return the mkfs option; None where the layout sets the profiles."""
        return None if evidence.cell.stack.layout.startswith("btrfs-") else self.off

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        layout = evidence.cell.stack.layout
        if layout in _COPYING:
            return
        copies = evidence.figure("btrfs_metadata_copies", "copies of metadata")
        amplified = evidence.figure("write_amplification", "device bytes per byte written")
        if (
            copies is not None
            and amplified is not None
            and copies.value > 1.5
            and amplified.value > NOTICEABLE
        ):
            profile = "RAID1" if layout == "btrfs-raid0" else "DUP"
            yield self.explanation(
                evidence,
                f"Metadata is stored {copies.value:.0f} times ({profile}); the device received "
                f"{amplified.value:.3g} bytes for each byte written.",
                amplified,
                copies,
                evidence.of_trace("traced_metadata_bytes", "metadata"),
                evidence.of_trace("traced_data_written_bytes", "data"),
                weight=amplified.value,
            )
