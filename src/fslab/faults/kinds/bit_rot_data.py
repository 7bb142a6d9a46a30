"""A flipped bit in data, which the disk returns with success."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _reads


class BitRotData(Fault):
    """One bit of what is read of a file is another one, for good."""

    summary = "a bit of a file's data flips"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_reads.attempts(ground, "bit-rot", data=True, undo=True, op="read", times=1))
