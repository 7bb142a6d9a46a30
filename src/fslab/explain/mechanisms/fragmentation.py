"""Fragmentation: neighbours in a file that are no neighbours on the device (FIEMAP)."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch
from fslab.workloads import Switchable


class Fragmentation(Mechanism):
    """Later sequential reads become random ones; on flash that costs requests, on disks seeks."""

    summary = "the file is fragmented"
    cause = "fragmentation"
    alters = True

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return writes(seen) and seen.traits.few_files and seen.filesystem != "btrfs"

    def switch(self, seen: Seen) -> Switch | None:
        """As its own option says."""
        in_place = seen.traits.switches.get(Switchable.IN_PLACE)
        return Switch(parameters=in_place) if in_place else None

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        pieces, extents = (
            seen.figure("file_pieces", "discontinuities"),
            seen.figure("file_extents", "extents"),
        )
        if pieces is not None and pieces.value > 1000:
            yield self.said(
                seen,
                f"The file is fragmented: {pieces.value:.0f} extents on the device.",
                pieces,
                extents,
                weight=0.5,
            )
