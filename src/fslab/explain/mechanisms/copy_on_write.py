"""Copy-on-write: an overwritten block gets a new place, and the tree above it is rewritten. btrfs(5), nodatacow."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch


class CopyOnWrite(Mechanism):
    """Overwriting a file fragments it. Each fsync writes a path of the tree instead of one inode."""

    summary = "overwritten blocks are stored in a new place"
    cause = "copy-on-write"
    filesystems = frozenset({"btrfs"})
    unless = ("nodatacow",)
    off = Switch(mount=("nodatacow",), instead=("datacow", "datasum"))

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        before, after = (
            evidence.value("file_extents_before"),
            evidence.figure("file_extents", "extents afterwards")
            or evidence.of_trace("file_extents", "extents afterwards"),
        )
        least = evidence.figure("file_extents_at_least", "extents afterwards, at least")
        grown = after or least
        if grown is not None and before and grown.value > 10 * before:
            yield self.explanation(
                evidence,
                f"Overwriting fragmented the file into {'' if after else 'at least '}{grown.value:.0f} extents "
                f"(before: {before:.0f}): each overwritten block is stored in a new place.",
                grown,
                evidence.of_trace("traced_sequential", "sequential device writes")
                or evidence.figure("disk_sequential", "sequential requests to the disk"),
                weight=grown.value / before,
            )
