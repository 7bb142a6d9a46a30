"""One flush fails: the disk cannot empty its cache."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _writes


class FlushError(Fault):
    """One flush fails for each new file. Writes succeed."""

    summary = "one flush of each new file fails"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_writes.attempts(ground, lambda: ground.arm("error", op="flush", times=1)))
