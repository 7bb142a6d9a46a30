"""Data cannot be read: a latent sector error in a file's data."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _reads


class ReadErrorData(Fault):
    """Each read of the place fails until it is written again."""

    summary = "a place with data of a file cannot be read"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_reads.attempts(ground, "latent", data=True))
