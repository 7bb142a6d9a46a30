"""Copy on write: a block that is written again gets a new place, and the tree above it is written anew. btrfs(5),
nodatacow."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch


class CopyOnWrite(Mechanism):
    """A file that is written over in place breaks into pieces, and each fsync writes a path of the tree instead
    of one inode."""

    summary = "blocks written over get new places"
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
                f"Overwriting in place fragmented the file into {'' if after else 'at least '}{grown.value:.0f} "
                f"extents (it had {before:.0f}): each block that is written over gets a new place.",
                grown,
                evidence.of_trace("traced_sequential", "device writes that follow the one before"),
                weight=grown.value / before,
            )
