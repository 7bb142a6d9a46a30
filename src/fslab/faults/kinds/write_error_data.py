"""Data that cannot be written, where metadata can: what fsync says, and what it says when it is asked again.

Rebello et al., Can Applications Recover from fsync Failures? USENIX ATC 2020.
"""

import os
from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import FILE_BYTES, Ground, sync
from fslab.faults.kinds import _writes


class WriteErrorData(Fault):
    """Files whose space is allocated are written over; the places of their data fail.

    Where that is, is seen by writing them once, and undoing it.
    """

    summary = "data of a file cannot be written, metadata can"

    def prepare(self, ground: Ground) -> None:
        """Allocated files: posix_fallocate(3) writes where there is no fallocate."""
        for path in _writes.new_paths(ground):
            with path.open("w+b", buffering=0) as file:
                os.posix_fallocate(file.fileno(), 0, FILE_BYTES)

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        paths = _writes.new_paths(ground)

        def write() -> None:
            for path in paths:
                ground.write(path, _writes.GENERATION)
                sync(path)

        with ground.undone():
            places = [each for each in ground.requests("write", write) if each.data]
        for place in places:
            ground.arm("error", op="write", where=place)
        return tuple(_writes.attempt(ground, path) for path in paths)
