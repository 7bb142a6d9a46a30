"""A bit flips in data; the disk returns the data with success."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _reads


class BitRotData(Fault):
    """One bit of the file data that is read flips permanently."""

    summary = "a bit of a file's data flips"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_reads.attempts(ground, "bit-rot", data=True, undo=True, op="read", times=1))
