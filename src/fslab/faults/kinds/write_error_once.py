"""One write fails, as with a transport error that is over at once."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _writes


class WriteErrorOnce(Fault):
    """The first write that the disk gets of a new file, be it data, metadata or journal."""

    summary = "one write of each new file fails, whatever it is"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(_writes.attempts(ground, lambda: ground.arm("error", op="write", times=1)))
