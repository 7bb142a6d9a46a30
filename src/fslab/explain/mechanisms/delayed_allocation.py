"""Delayed allocation: data gets its place when it is written back: Documentation/filesystems/ext4/."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch
from fslab.units import format_size


class DelayedAllocation(Mechanism):
    """What is deleted soon never reaches the disk, and neighbours are written together."""

    summary = "places are chosen at writeback"
    cause = "delayed allocation"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return (
            seen.filesystem == "ext4"
            and writes(seen)
            and "nodelalloc" not in seen.mount_options
            and seen.traits.direct is not True
        )

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mount=("nodelalloc",))

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        delayed = seen.figure("delayed_allocation_bytes", "bytes without a place")
        if delayed is not None and delayed.value > 1 << 20:
            yield self.said(
                seen,
                f"When the tool ended, {format_size(delayed.value)} had no place on the disk yet: that writing is not "
                "in its time.",
                delayed,
                seen.figure("device_written_bytes", "device bytes by then"),
                weight=1.0,
            )
