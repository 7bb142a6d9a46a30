"""Data that cannot be read: a latent sector error below a file."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _reads


class ReadErrorData(Fault):
    """The disk fails each read of the place until it is written again."""

    summary = "a place with data of a file cannot be read"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_reads.attempts(ground, "latent", data=True))
