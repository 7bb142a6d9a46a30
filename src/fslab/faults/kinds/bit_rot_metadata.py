"""A bit flips in metadata; the disk returns the metadata with success."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _reads


class BitRotMetadata(Fault):
    """One bit of an inode, a directory or a tree flips permanently. A second copy is not changed."""

    summary = "a bit flips in a file's metadata"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_reads.attempts(ground, "bit-rot", data=False, undo=True, op="read", times=1))
