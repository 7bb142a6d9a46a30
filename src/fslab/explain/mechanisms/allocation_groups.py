"""Allocation groups: XFS allocates in several parts of the disk in parallel. mkfs.xfs(8), agcount."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Certainty, Explanation
from fslab.explain.switch import Switch


class AllocationGroups(Mechanism):
    """With one group, parallel allocations wait for each other."""

    summary = "parallel allocation in groups"
    cause = "allocation groups"
    filesystems = frozenset({"xfs"})
    unless = ("agcount",)
    off = Switch(mkfs="-d agcount=2")

    def applies(self, evidence: Evidence) -> bool:
        return super().applies(evidence) and evidence.traits.many_files

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        extents = evidence.figure("xfs_allocated_extents", "extents allocated")
        if extents is not None and extents.value > 10_000:
            yield self.explanation(
                evidence,
                f"{extents.value:.0f} extents were allocated; XFS spreads them over its allocation groups.",
                extents,
                weight=0.05,
                certainty=Certainty.COINCIDES,
            )
