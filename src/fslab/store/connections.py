"""How a store's connections and transactions are set up: time limits, locks, and what is committed is on the disk.

SQLite runs in WAL mode with synchronous FULL: a committed trial survives power loss.
"""

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from fslab.errors import StoreLostError
from fslab.store import database_errors, readonly
from fslab.store.schema import VERSION_TABLE
from fslab.store.store_url import file_of

BUSY_TIMEOUT_S = 30.0
_LOOK_EVERY = 100_000  # steps of SQLite's virtual machine: some milliseconds
WRITING = "fslab_writing"  # execution option: take SQLite's write lock when the transaction begins


def configure(engine: Engine, reading: readonly.Connector | None) -> None:
    """Set up the connections and transactions of an engine. ``reading``: makes them, for a store that is only read."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_reading if reading else _configure_sqlite)
        if not reading and (file := file_of(engine.url)):
            place = os.path.abspath(file)  # noqa: PTH100 - as SQLAlchemy does
            event.listen(engine, "connect", lambda _, record: record.info.update({_File: _File.of(place)}))
        event.listen(engine, "begin", _begin_sqlite)
        event.listen(engine, "before_cursor_execute", _begin_statement)
    elif engine.url.drivername == "postgresql+psycopg":
        event.listen(engine, "connect", _configure_postgresql)
        event.listen(engine, "begin", _begin_postgresql)
    if isinstance(reading, readonly.CopyConnector):
        event.listen(engine, "engine_disposed", reading.close)


class _Statement:
    """The running statement of a connection. ``ends``: when it is ended; None: never."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.ends: float | None = None
        connection.set_progress_handler(self._is_over, _LOOK_EVERY)

    def _is_over(self) -> bool:
        # Python handles signals when it is called: without this, none would end a statement.
        return self.ends is not None and time.monotonic() > self.ends


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    """The database file that a connection has open. ``identity``: its device and inode, None if it is not there."""

    path: str
    identity: tuple[int, int] | None

    @classmethod
    def of(cls, path: str) -> Self:
        try:
            found = Path(path).stat()
        except OSError:
            return cls(path=path, identity=None)
        return cls(path=path, identity=(found.st_dev, found.st_ino))

    def check(self) -> None:
        """Raise StoreLostError if the path leads to another file by now, or to none: what is stored in the open one
        would be lost."""
        if self.identity is None or _File.of(self.path) != self:
            what = "was removed, moved or replaced while it was open"
            raise StoreLostError(what, where=self.path, hint="put it back")


def _begin_statement(connection: Connection, *_: object) -> None:
    writes = connection.get_execution_options().get(WRITING)
    ends = time.monotonic() + database_errors.STATEMENT_LIMIT_S
    connection.info[_Statement].ends = None if writes else ends


def _configure_sqlite(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
    _configure_any(connection, record)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not names or VERSION_TABLE in names:  # the mode stays in the file: not in that of another program
        _enter_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _configure_postgresql(connection: Any, _record: object) -> None:
    """Override settings of the server that fslab cannot work with.

    ``synchronous_commit = off`` could lose a confirmed trial; a stored trial must be on disk. Other settings make the
    server return dates that the driver cannot read, or numbers with too few digits. The limits are those of SQLite: a
    machine of a fleet can lock rows, and the owner of the database can make views whose reading never ends.
    """
    from fslab.store import instants  # noqa: PLC0415 - the driver is optional

    instants.register(connection)
    with connection.cursor() as cursor:
        limits_s = (BUSY_TIMEOUT_S, database_errors.STATEMENT_LIMIT_S)
        cursor.execute(
            "SELECT set_config('DateStyle', 'ISO', false), set_config('extra_float_digits', '1', false), "
            "set_config('lock_timeout', %s, false), set_config('statement_timeout', %s, false)",
            tuple(f"{limit_s * 1000:.0f}ms" for limit_s in limits_s),
        )
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') = 'off'"
        )
    connection.commit()


def _begin_postgresql(connection: Connection) -> None:
    if connection.get_execution_options().get(WRITING):
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")


def _configure_reading(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
    _configure_any(connection, record)
    connection.execute("PRAGMA query_only = ON")  # writes to a copy would be lost


def _configure_any(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
    record.info[_Statement] = _Statement(connection)
    connection.isolation_level = None  # _begin_sqlite begins transactions, not the driver
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000:.0f}")
    connection.execute("PRAGMA trusted_schema = OFF")  # functions in views of a manipulated store


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode, with retries: SQLite ignores its busy timeout when it takes the lock for this change."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that first reads and then writes fails at once if another one wrote meanwhile. IMMEDIATE waits.
    immediate = connection.get_execution_options().get(WRITING)
    if immediate and (file := connection.info.get(_File)):
        file.check()
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
