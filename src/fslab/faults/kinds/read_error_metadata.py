"""Metadata cannot be read: a latent sector error in an inode, a directory or a tree."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _reads


class ReadErrorMetadata(Fault):
    """Each read of the place fails until it is written again. A second copy is not changed."""

    summary = "a place with a file's metadata cannot be read"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_reads.attempts(ground, "latent", data=False))
