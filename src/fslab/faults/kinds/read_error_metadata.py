"""Metadata that cannot be read: a latent sector error below an inode, a directory or a tree."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _reads


class ReadErrorMetadata(Fault):
    """The disk fails each read of the place until it is written again. A second copy is not touched."""

    summary = "a place with metadata that lead to a file cannot be read"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_reads.attempts(ground, "latent", data=False))
