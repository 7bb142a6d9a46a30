"""Two copies of all metadata on one device: mkfs.btrfs(8), the profile DUP."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import NOTICEABLE, Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch


class MetadataDuplication(Mechanism):
    """What is written of trees and superblocks is written twice."""

    summary = "metadata is written twice"
    cause = "the second copy of metadata"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return seen.filesystem == "btrfs" and writes(seen) and "-m single" not in seen.cell.stack.mkfs_options

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mkfs="-m single")

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        copies = seen.figure("btrfs_metadata_copies", "copies of metadata")
        amplified = seen.figure("write_amplification", "device bytes per byte written")
        if (
            copies is not None
            and amplified is not None
            and copies.value > 1.5
            and amplified.value > NOTICEABLE
        ):
            yield self.said(
                seen,
                f"Metadata is kept {copies.value:.0f} times; the device received {amplified.value:.3g} bytes "
                f"for each byte written.",
                amplified,
                copies,
                seen.of_trace("traced_metadata_bytes", "metadata"),
                seen.of_trace("traced_data_written_bytes", "data"),
                weight=amplified.value,
            )
