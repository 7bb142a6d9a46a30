"""Directories for temporary files: what a killed process has left is removed. The process that uses one holds a lock on
a file in it, by which fslab also knows that it has made the directory.

They are in no journal: also a process that only reads makes them, and one that cannot write to its own directories.
"""

import contextlib
import fcntl
import logging
import os
import stat
import tempfile
import weakref
from pathlib import Path
from typing import Self

from fslab.errors import UnsafeError
from fslab.system import files, paths, trees

log = logging.getLogger("fslab.temporary")
PREFIX = "fslab-"
LOCK = ".fslab-in-use"


class TemporaryDirectory:
    """A new directory of mode 0700 in that for temporary files, or in ``where`` (``paths.temporary``). ``kind``: what
    it is for, a word. Removed at the end of a block, by ``close``, or with this object."""

    def __init__(self, kind: str, where: Path | None = None) -> None:
        place = paths.temporary(where)
        while True:
            self._made = tempfile.TemporaryDirectory(prefix=f"{PREFIX}{kind}-", dir=place)
            self.path = Path(self._made.name)
            lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._unlock = weakref.finalize(self, os.close, lock)
            try:
                if files.locked(lock):
                    return
            except OSError as error:  # a file system without locks: then it is not removed, either
                log.debug("%s is not locked: %s", self.path, error)
                return
            self.close()  # another process has just taken it for one that was left

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the directory. Can be called twice."""
        self._made.cleanup()
        self._unlock()


def remove_left(where: Path | None = None) -> list[Path]:
    """Remove such directories of this user that no process uses, in that for temporary files or in ``where``. Return
    them. OSError if one cannot be removed, after the others were."""
    removed, errors = [], []
    try:
        place = paths.temporary(where)
    except (UnsafeError, FileNotFoundError):  # then none was made there
        return []
    for path in sorted(place.glob(f"{PREFIX}*")):
        with contextlib.ExitStack() as undo:
            try:
                _lock(path, undo)
            except OSError:  # another user's, another program's, in use, removed meanwhile, or without locks
                continue
            try:
                trees.remove(path)
                removed.append(path)
            except OSError as error:
                errors.append(error)
    if errors:
        raise errors[0]
    return removed


def _lock(path: Path, undo: contextlib.ExitStack) -> None:
    """Lock a directory that was left, until ``undo`` is. OSError if it is another one, in use, or gone."""
    # Opened as a place at first: any user can mount FUSE on a directory of this name, whose server need not answer.
    found = files.held(path, undo, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    if trees.mount_of(found) != trees.mount_of(files.held(path.parent, undo, os.O_PATH)):
        raise PermissionError(f"something is mounted there: {path}")
    directory = files.held(f"/proc/self/fd/{found}", undo, os.O_DIRECTORY)
    about = os.fstat(directory)
    if (about.st_uid, stat.S_IMODE(about.st_mode)) != (os.geteuid(), 0o700):
        raise PermissionError(f"not a directory of this user alone: {path}")
    lock = undo.enter_context(files.opened(LOCK, os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory))
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if not os.path.samestat(about, path.lstat()):
        raise FileNotFoundError(path)
