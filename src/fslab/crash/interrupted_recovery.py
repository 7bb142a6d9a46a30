"""A power cut while a file system recovers from an earlier one: record what the mount or the repair of a crash state
writes. Crash states are then made of that recording.

The state is copied to a separate virtual disk. This module only records; ``judge`` decides what the contents must be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fslab.crash.examine import LIMIT_S, Subject
from fslab.crash.recording import Recording
from fslab.system import disk_server, files, mounts, proc, process_marks
from fslab.system.signals import Teardown, shielded

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIRECTORY = "recovering"


@contextmanager
def recovery_of(
    image: Path, tested: Subject, target: Path, *, volatile: bool, repair: bool = False
) -> Iterator[Recording | None]:
    """Record the requests from mount to unmount of ``image`` on ``target``; None if it cannot be mounted.

    ``volatile``: whether the disk has a volatile cache. ``repair``: record a full repair instead; None if it fails, or
    if the file system has none. ``image`` is the base of the recording. It is not changed, except before a repair that
    needs its log replayed. The recording is removed when the context ends.
    """
    if repair and tested.driver.repair_needs_replay and not _mounted(tested, image, target):
        yield None
        return
    directory = image.with_name(_DIRECTORY)
    mark = os.environ.get(process_marks.MARK, "crash")
    with Teardown() as undo:
        undo.callback(_remove, directory)
        with shielded():  # a disk without a model is ready at once
            server = disk_server.start(directory, _options(image, directory, volatile=volatile), mark=mark)
            undo.callback(server.end)
        _copy(image, server.file)
        server.ask("clear")
        done = _repaired(tested, server.file) if repair else _mounted(tested, server.file, target)
        server.ask("sync")
        yield Recording(base=image, log=disk_server.log_of(directory)) if done else None


def _remove(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


def _options(image: Path, directory: Path, *, volatile: bool) -> Sequence[str]:
    size, cache = str(image.stat().st_size), "volatile" if volatile else "none"
    log = ("--log", disk_server.log_of(directory).name, "--log-data", "--log-limit", size)
    return ("--size", size, "--cache", cache, *log)


def _repaired(tested: Subject, file: Path) -> bool:
    argv = tested.driver.full_repair_argv(str(file))
    if argv is None:
        return False
    return proc.run(argv, check=False, timeout_s=LIMIT_S).returncode in tested.driver.repaired_statuses


def _mounted(tested: Subject, file: Path, target: Path) -> bool:
    """Mount and unmount the file. Return whether it could be mounted."""
    options = tested.driver.copy_mount_options(f"{tested.options},loop")
    argv = tested.driver.mount_argv(options, str(file), str(target))
    with Teardown() as undo:
        undo.callback(mounts.unmount, target, devices=None)
        return proc.run(argv, check=False, timeout_s=LIMIT_S).returncode == 0


def _copy(image: Path, file: Path) -> None:
    """Copy the parts of the image that are neither holes nor zeros to an empty disk."""
    with image.open("rb", buffering=0) as source, file.open("r+b", buffering=0) as target:
        for at, size in files.data_pieces(source.fileno()):
            piece = os.pread(source.fileno(), size, at)
            if piece.strip(b"\0"):
                os.pwrite(target.fileno(), piece, at)
        os.fsync(target.fileno())
