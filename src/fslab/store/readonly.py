"""Opens an SQLite store that is only read: another user can write to it, or it is on a read-only file system.

SQLite keeps the last commits in a file beside the database (WAL), and an index of the WAL in a third file. If it can
create neither, it opens the database only with the promise that no process writes to it (sqlite.org/wal.html,
"Read-Only Databases").

Whoever can put a file beside a database can make SQLite delete any file of the reader: a hot rollback journal names a
super-journal, which SQLite deletes when it has rolled back (sqlite.org/atomiccommit.html, "Multi-file Commit"). So
what others can write is never opened where it lies, but as a copy of the database file alone. A store beside such a
journal is refused also where only its reader can write: an archive may have brought both.
"""

import errno
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock
from urllib.parse import quote

from fslab.errors import UnsafeError
from fslab.system import files, path_owners, untrusted_files
from fslab.system.temporary import TemporaryDirectory

log = logging.getLogger("fslab.store")
_ROOM_SHARE = 2  # a copy takes at most half of the free space
_COPIES = 5  # attempts to copy a database that another process writes to
_copying = Lock()  # each sees the space that the others have left
Connector = Callable[[], sqlite3.Connection]


def connector(path: Path) -> Connector | None:
    """Return a function that connects read-only; None if the store can be written, so that none is needed.

    OSError if the store cannot be read, UnsafeError as ``check_journal``.
    """
    if why := stranger(path):
        return _foreign(path, why)
    check_journal(path)
    if path.is_dir() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return None
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    if not _has_content(log):
        return partial(_connect, path, "mode=ro&immutable=1")
    if index.exists():
        return partial(_connect, path, "mode=ro")
    copy = CopyConnector(path.name)
    for file in (path, log):
        shutil.copyfile(file, copy.path.with_name(file.name))
    return copy


def stranger(path: Path) -> str | None:
    """Return who else can write to a store or put a file beside it, in words; None if only trusted users can.

    OSError if this cannot be determined. Other users than root share stores in directories of their groups.
    """
    real = Path(os.path.realpath(path)).parent
    groups = path_owners.Groups.PRIVATE if os.geteuid() == 0 else path_owners.Groups.ANY
    beside = path_owners.stranger_on_the_way(real, sticky=not real.is_dir(), groups=groups)
    return beside or path_owners.stranger_on_the_way(path, groups=groups)


def check_journal(path: Path) -> None:
    """Raise UnsafeError if the journal beside a store names another file, which SQLite would delete."""
    real = Path(os.path.realpath(path))
    journal = real.with_name(f"{real.name}-journal")
    if untrusted_files.journal_names_another_file(journal):
        what = "not opened: the journal beside the store names another file, and SQLite would delete that"
        hint = "fslab makes no such journal: remove it, and do not trust the store"
        raise UnsafeError(what, where=str(journal), hint=hint)


class CopyConnector:
    """Connects to a temporary copy of a store, which is removed with the engine.

    For a store that another user can write to, and for one that has a WAL but no index, because it was copied or
    interrupted: SQLite can read that only where it can create the index.
    """

    def __init__(self, name: str) -> None:
        self._directory = TemporaryDirectory("store")
        self.path = self._directory.path / name

    def __call__(self) -> sqlite3.Connection:
        """Connect to the copy."""
        return _connect(self.path, "mode=rw")

    def close(self, _engine: object = None) -> None:
        """Remove the copy. Can be called twice."""
        self._directory.close()


def _foreign(path: Path, why: str) -> CopyConnector:
    """Return a connector to a copy of a store that others can write to, without the files beside it."""
    copy = CopyConnector("store.sqlite")
    try:
        _copy_at_rest(path, copy.path)
    except BaseException:
        copy.close()
        raise
    if _has_content(path.with_name(f"{path.name}-wal")):
        log.warning(
            "%s: read as a copy (%s); what its last campaigns have not yet moved from %s-wal is missing",
            path,
            why,
            path.name,
        )
    return copy


def _copy_at_rest(path: Path, target: Path) -> None:
    """Copy a regular file as it was at one moment. OSError if it changes each time, or needs much of the space."""
    descriptor = untrusted_files.open_regular(os.path.realpath(path))
    with os.fdopen(descriptor, "rb"), _copying:
        for _ in range(_COPIES):
            before = os.fstat(descriptor)
            _copy_data(descriptor, before.st_size, target)
            after = os.fstat(descriptor)
            if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
                return
    raise OSError(errno.EBUSY, "it changes while it is read", str(path))


def _copy_data(source: int, size: int, target: Path) -> None:
    """Copy a file with its holes: a sparse file of terabytes costs its owner nothing."""
    with target.open("wb") as copy:
        about = os.statvfs(target)
        left = about.f_bavail * about.f_frsize // _ROOM_SHARE
        for at, length in files.data_pieces(source):
            left -= length
            if left < 0 or at >= size:
                break
            files.write_all(copy.fileno(), os.pread(source, length, at), at)
        os.ftruncate(copy.fileno(), size)
    if left < 0:
        why = f"its copy needs more than half of the free space in {target.parent.parent}: set TMPDIR"
        raise OSError(errno.ENOSPC, why, str(target))


def _connect(path: Path, how: str) -> sqlite3.Connection:
    # As SQLAlchemy itself connects: a pool passes connections between threads.
    return sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, check_same_thread=False)


def _has_content(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except FileNotFoundError:
        return False
