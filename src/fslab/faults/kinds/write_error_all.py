"""All writes fail, as on a disk that has become read-only."""

from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import Ground
from fslab.faults.kinds import _writes


class WriteErrorAll(Fault):
    """Reads still succeed."""

    summary = "all writes fail from one moment on"

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        ground.arm("error", op="write")
        return tuple(_writes.attempt(ground, path) for path in _writes.new_paths(ground))
