"""The disk is full when files are replaced by rename."""

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial

from fslab.faults import FILES, Attempt, Fault
from fslab.faults.ground import Ground, error_of
from fslab.faults.kinds import _writes
from fslab.system import mounts
from fslab.system.mounts import sync

_LARGEST, _LEAST = 64 << 20, 4 << 10
_NAMES = 20_000
FILLER, NAMES = "filler", "names"


class FullDisk(Fault):
    """The new contents are durable under another name before the disk is full. The rename needs no data block."""

    summary = "files are replaced by rename while no space is left"

    def prepare(self, ground: Ground) -> None:
        """Write the new contents."""
        for path in _writes.new_paths(ground):
            ground.write(path, _writes.GENERATION)

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        """Fill the disk, and replace the files."""
        _fill(ground)
        return tuple(_replace(ground, number) for number in range(FILES))

    def end(self, ground: Ground) -> None:
        """Delete the files that fill the disk."""
        error_of((ground.directory / FILLER).unlink)
        error_of(lambda: shutil.rmtree(ground.directory / NAMES))
        error_of(lambda: mounts.flush(ground.directory))


def _replace(ground: Ground, number: int) -> Attempt:
    path = ground.path(number)

    def replace() -> None:
        path.with_name(_writes.NEW).replace(path)
        sync(path.parent)

    return Attempt(path=ground.relative(path), error=error_of(replace), now=_writes.GENERATION, before=1)


def _fill(ground: Ground) -> None:
    """Fill the disk with allocated blocks, then with names."""
    with (ground.directory / FILLER).open("w+b", buffering=0) as file:
        size, at = _LARGEST, 0
        while size >= _LEAST:
            if _is_full(partial(os.posix_fallocate, file.fileno(), at, size)):
                size //= 2
            else:
                at += size
        _is_full(partial(os.fsync, file.fileno()))
    names = ground.directory / NAMES
    if not _is_full(names.mkdir):
        any(_is_full((names / f"{number:0200d}").touch) for number in range(_NAMES))


def _is_full(work: Callable[[], object]) -> bool:
    try:
        work()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return True
    return False
