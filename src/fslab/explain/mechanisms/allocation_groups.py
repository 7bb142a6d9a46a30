"""Allocation groups: XFS allocates in several parts of the disk at the same time. mkfs.xfs(8), agcount."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.explain.mechanisms import Mechanism, writes
from fslab.explain.seen import Seen
from fslab.explain.statement import Certainty, Statement
from fslab.explain.switch import Switch


class AllocationGroups(Mechanism):
    """One group makes parallel allocations wait for each other."""

    summary = "parallel allocation in groups"
    cause = "allocation groups"

    def applies(self, seen: Seen) -> bool:
        """Where it is in effect."""
        return (
            seen.filesystem == "xfs"
            and writes(seen)
            and seen.traits.many_files
            and "agcount" not in seen.cell.stack.mkfs_options
        )

    def switch(self, seen: Seen) -> Switch | None:  # noqa: ARG002
        """As its own option says."""
        return Switch(mkfs="-d agcount=2")

    def state(self, seen: Seen) -> Iterator[Statement]:
        """What was counted."""
        extents = seen.figure("xfs_allocated_extents", "extents allocated")
        if extents is not None and extents.value > 10_000:
            yield self.said(
                seen,
                f"{extents.value:.0f} extents were allocated.",
                extents,
                weight=0.05,
                certainty=Certainty.COINCIDES,
            )
