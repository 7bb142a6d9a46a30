"""Writes of data fail, but writes of metadata succeed: what fsync returns, and what a second fsync returns.

Rebello et al., Can Applications Recover from fsync Failures? USENIX ATC 2020.
"""

import os
from collections.abc import Sequence

from fslab.faults import Attempt, Fault
from fslab.faults.ground import FILE_BYTES, Ground
from fslab.faults.kinds import _writes
from fslab.system.mounts import sync


class WriteErrorData(Fault):
    """Overwrite files whose space is allocated, while writes to the places of their data fail.

    The places are found by writing the files once and then restoring the disk.
    """

    summary = "data of a file cannot be written, metadata can"

    def prepare(self, ground: Ground) -> None:
        """Create files with allocated space. Without fallocate(2), posix_fallocate(3) writes to them."""
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
