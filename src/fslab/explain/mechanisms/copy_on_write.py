"""Copy on write: a block that is written again gets a new place, and the tree above it is written anew. btrfs(5),
nodatacow."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.explain.switch import Switch


class CopyOnWrite(Mechanism):
    """A file that is written over in place breaks into pieces, and each fsync writes a path of the tree instead
    of one inode."""

    summary = "blocks written over get new places"
    cause = "copy-on-write"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return seen.filesystem == "btrfs" and writes(seen) and "nodatacow" not in seen.mount_options

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mount=("nodatacow",), instead=("datacow", "datasum"))

    def state(self, seen: Seen) -> Iterator[Statement]:
        """How the file broke up."""
        before, after = (
            seen.value("file_extents_before"),
            seen.figure("file_extents", "extents afterwards")
            or seen.of_trace("file_extents", "extents afterwards"),
        )
        least = seen.figure("file_extents_at_least", "extents afterwards, at least")
        grown = after or least
        if grown is not None and before and grown.value > 10 * before:
            yield self.said(
                seen,
                f"Overwriting in place fragmented the file into {'' if after else 'at least '}{grown.value:.0f} "
                f"extents (it had {before:.0f}): each block that is written over gets a new place.",
                grown,
                seen.of_trace("traced_sequential", "device writes that follow the one before"),
                weight=grown.value / before,
            )
