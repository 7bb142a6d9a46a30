"""Opens an SQLite store that cannot be written: it is on a read-only file system, or belongs to another user.

SQLite keeps the last commits in a file beside the database (WAL), and an index of the WAL in a third file. If it can
create neither, it opens the database only with the promise that no process writes to it (sqlite.org/wal.html,
"Read-Only Databases").
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import quote

Connector = Callable[[], sqlite3.Connection]


def connector(database: str | None) -> Connector | None:
    """Return a function that connects read-only; None if the store can be written, so that none is needed.

    OSError if the store cannot be read.
    """
    if database in {None, "", ":memory:"}:
        return None
    path = Path(str(database))
    if path.is_dir() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return None
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    if not _has_content(log):
        return partial(_connect, path, "mode=ro&immutable=1")
    if index.exists():
        return partial(_connect, path, "mode=ro")
    return CopyConnector(path, log)


class CopyConnector:
    """Connects to a temporary copy of a store that has a WAL but no index, because it was copied or interrupted.

    SQLite can read such a store only where it can create the index. The copy is removed with the engine.
    """

    def __init__(self, path: Path, log: Path) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="fslab-store-")
        self._path = Path(self._directory.name) / path.name
        for file in (path, log):
            shutil.copyfile(file, self._path.with_name(file.name))

    def __call__(self) -> sqlite3.Connection:
        """Connect to the copy."""
        return _connect(self._path, "mode=rw")

    def close(self, _engine: object = None) -> None:
        """Remove the copy. Can be called twice."""
        self._directory.cleanup()


def _connect(path: Path, how: str) -> sqlite3.Connection:
    # As SQLAlchemy itself connects: a pool passes connections between threads.
    return sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, check_same_thread=False)


def _has_content(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except FileNotFoundError:
        return False
