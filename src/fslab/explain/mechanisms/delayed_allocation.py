"""Delayed allocation: blocks are allocated when data is written back. Documentation/filesystems/ext4/."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size


class DelayedAllocation(Mechanism):
    """Data that is deleted soon never reaches the disk, and neighbouring data is written together."""

    summary = "blocks are allocated at writeback"
    cause = "delayed allocation"
    filesystems = frozenset({"ext4"})
    unless = ("nodelalloc",)
    unswitchable = frozenset({"xfs", "btrfs", "f2fs", "nilfs2", "bcachefs"})
    off = Switch(mount=("nodelalloc",))

    def applies(self, evidence: Evidence) -> bool:
        return super().applies(evidence) and evidence.traits.direct is not True

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        delayed = evidence.figure("delayed_allocation_bytes", "bytes not allocated yet")
        if delayed is not None and delayed.value > 1 << 20:
            yield self.explanation(
                evidence,
                f"When the tool ended, {format_size(delayed.value)} had no blocks on the disk yet: the measured time "
                "does not include writing them.",
                delayed,
                evidence.figure("device_written_bytes", "device bytes by then"),
                weight=1.0,
            )
