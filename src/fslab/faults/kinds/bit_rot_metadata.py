"""A flipped bit in metadata, which the disk returns with success."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _reads


class BitRotMetadata(Fault):
    """One bit of an inode, a directory or a tree is another one, for good. A second copy is not touched."""

    summary = "a bit of the metadata that lead to a file flips"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_reads.attempts(ground, "bit-rot", data=False, undo=True, op="read", times=1))
