"""A power cut while a file system recovers from another one: what mounting a crash state writes is recorded, and crash
states are made of that recording in turn.

The state is put on a virtual disk of its own. Makes and examines; what its contents must be is the judge's matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fslab.crash.examine import LIMIT_S, Subject
from fslab.crash.recording import Recording
from fslab.system import disk, mounts, proc

if TYPE_CHECKING:
    from collections.abc import Sequence

PIECE_BYTES = 1 << 20
_DIRECTORY = "recovering"


@contextmanager
def recovery_of(image: Path, tested: Subject, target: Path) -> Iterator[Recording | None]:
    """What the disk of ``image`` is told from mount to unmount on ``target``; None where it cannot be mounted.

    ``image`` stays as it is: it is the base of the recording, which goes with the context.
    """
    directory = image.with_name(_DIRECTORY)
    server = disk.start(directory, _options(image, directory), mark=os.environ.get(proc.MARK, "crash"))
    try:
        _copy(image, server.file)
        server.ask("clear")
        mounted = _mount(tested, server.file, target)
        if mounted:
            mounts.unmount(target)
        server.ask("sync")
        yield Recording(base=image, log=disk.log_of(directory)) if mounted else None
    finally:
        server.end()
        with suppress(OSError):
            directory.rmdir()


def _options(image: Path, directory: Path) -> Sequence[str]:
    return ("--size", str(image.stat().st_size), "--log", disk.log_of(directory).name, "--log-data")


def _mount(tested: Subject, file: Path, target: Path) -> bool:
    options = tested.driver.copy_mount_options(f"{tested.options},loop")
    argv = tested.driver.mount_argv(options, str(file), str(target))
    return proc.run(argv, check=False, timeout_s=LIMIT_S).returncode == 0


def _copy(image: Path, file: Path) -> None:
    """What the image has that is not a hole, onto a disk that is empty."""
    with image.open("rb", buffering=0) as source, file.open("r+b", buffering=0) as target:
        size, at = image.stat().st_size, 0
        while at < size:
            try:
                at = os.lseek(source.fileno(), at, os.SEEK_DATA)
            except OSError:  # ENXIO: nothing but holes follows
                break
            end = os.lseek(source.fileno(), at, os.SEEK_HOLE)
            while at < end:
                piece = os.pread(source.fileno(), min(PIECE_BYTES, end - at), at)
                if piece.strip(b"\0"):
                    os.pwrite(target.fileno(), piece, at)
                at += len(piece)
        os.fsync(target.fileno())
