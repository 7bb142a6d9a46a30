"""One write fails, as with a short transport error."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _writes


class WriteErrorOnce(Fault):
    """The first write to the disk for a new file fails, whether it is data, metadata or journal."""

    summary = "one write for each new file fails: of data, metadata or journal"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_writes.attempts(ground, lambda: ground.arm("error", op="write", times=1)))
