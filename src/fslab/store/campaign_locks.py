"""Locks of the campaigns of a store: whoever uses the store sees them, wherever fslab keeps its own state.

Of an SQLite store, each is a byte of a file beside it, and a lock of the open file (fcntl(2), F_OFD_SETLK): the kernel
releases it when the process ends. On a PostgreSQL server, each is an advisory lock of a connection of its own: the
server releases it when the connection ends, or its machine is gone.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from fslab.errors import BusyError, StoreError, StoreLostError
from fslab.store.database import check_closed
from fslab.store.database_errors import translated
from fslab.system import files

_FLOCK = struct.Struct("@hhqqi4x")  # struct flock: type, whence, start, length, process
_TAKEN = frozenset({errno.EAGAIN, errno.EACCES})
# The connection is idle while the campaign runs: the server must not end it for that, and without keepalives, it would
# hold the lock of a machine whose power failed for two hours.
_IDLE = """
SELECT set_config(name, value, false) FROM (VALUES ('idle_session_timeout', '0'), ('tcp_keepalives_idle', '20'),
  ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3')) AS wanted (name, value)
WHERE current_setting(name, true) IS NOT NULL
"""
_HELD = """
SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
  WHERE locktype = 'advisory' AND datname = current_database() AND objsubid = 1 AND granted
  AND CAST(classid AS bigint) << 32 | CAST(objid AS bigint) = :key)
"""


def path_of(database: Path) -> Path:
    """Return the file of the locks: where the database really is, so that a link to it has the same ones."""
    real = Path(os.path.realpath(database))
    return real.with_name(f"{real.name}-running")


@contextlib.contextmanager
def held(database: Path, campaign: str) -> Iterator[None]:
    """Hold the lock of a campaign. BusyError if another process holds it, StoreError if its file cannot be used,
    UnsafeError if another user can put files beside the store."""
    check_closed(database)
    path = path_of(database)
    with files.closed_after(_opened(path)) as descriptor:
        with contextlib.suppress(OSError):  # it may be another user's
            # Who can write to the store shares its locks. Who can only read it could hold them all.
            writers = database.stat().st_mode & 0o222
            os.fchmod(descriptor, writers | writers << 1)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _lock(campaign))
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            raise _busy(campaign, str(path)) from error
        yield


def _busy(campaign: str, where: str) -> BusyError:
    return BusyError(
        f"campaign {campaign} is running in another process",
        where=where,
        hint="wait until it ends, or stop it with Ctrl-C",
    )


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        hint = "fslab makes this file: permit it there, and remove another of its name"
        raise StoreError(f"cannot be opened: {error.strerror}", where=str(path), hint=hint) from error


def is_held(database: Path, campaign: str) -> bool:
    """Return whether a process holds the lock of a campaign, without taking it."""
    try:
        with files.opened(path_of(database), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor:
            found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _lock(campaign))
    except OSError:  # no such file, or another user's
        return False
    return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)


@contextlib.contextmanager
def held_on_server(engine: Engine, place: str, campaign: str) -> Iterator[Callable[[], None]]:
    """Hold the lock of a campaign, and yield a check that it is held, which takes it again after the connection was
    lost. BusyError if another process holds it, StoreLostError if the server is away.

    The check raises StoreLostError also if the lock is taken: by another process, or by the lost connection, until the
    server notices.
    """
    lock = _ServerLock(engine=engine, place=place, campaign=campaign)
    if not lock.take():
        raise _busy(campaign, place)
    try:
        yield lock.keep
    finally:
        lock.release()


@dataclass(kw_only=True, slots=True)
class _ServerLock:
    engine: Engine
    place: str
    campaign: str
    connection: Connection | None = field(default=None, init=False)

    def take(self) -> bool:
        """Take the lock on a new connection. Return whether it was free."""
        with translated(self.place), contextlib.ExitStack() as undo:
            connection = undo.enter_context(self.engine.connect())
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.execute(text(_IDLE))
            if not connection.execute(
                text("SELECT pg_try_advisory_lock(:key)"), _key(self.campaign)
            ).scalar():
                return False
            undo.pop_all()
            self.connection = connection
        return True

    def keep(self) -> None:
        if not self._is_connected() and not self.take():
            raise StoreLostError(
                f"the connection that kept campaign {self.campaign} from other processes was lost, and it is locked: "
                "another process runs it, or the server has not noticed yet",
                where=self.place,
                hint="wait until it ends",
            )

    def _is_connected(self) -> bool:
        try:
            if self.connection is not None:
                self.connection.execute(text("SELECT 1"))
        except DBAPIError:
            self._drop()
        return self.connection is not None

    def _drop(self) -> None:
        if self.connection is not None:
            self.connection.invalidate()
            self.connection.close()
            self.connection = None

    def release(self) -> None:
        try:
            if self.connection is not None:
                self.connection.execute(text("SELECT pg_advisory_unlock(:key)"), _key(self.campaign))
                self.connection.close()
        except DBAPIError:
            self._drop()


def is_held_on_server(engine: Engine, place: str, campaign: str) -> bool:
    """Return whether a process holds the lock of a campaign, without taking it."""
    with translated(place), engine.connect() as connection:
        return bool(connection.execute(text(_HELD), _key(campaign)).scalar())


def _key(campaign: str) -> dict[str, int]:
    return {"key": _number(campaign)}


def _number(campaign: str) -> int:
    return int.from_bytes(hashlib.sha256(campaign.encode()).digest()[:7], "big")


def _lock(campaign: str) -> bytes:
    return _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _number(campaign), 1, 0)
