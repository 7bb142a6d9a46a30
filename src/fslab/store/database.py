"""Connects to a store's database and creates its tables.

SQLite runs in WAL mode with synchronous FULL: a committed trial survives power loss. Must not depend on campaigns and
trials.
"""

import contextlib
import os
import shlex
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, table, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.sql import column

from fslab.errors import NotStoredError, StoreError, StoreLostError, UnsafeError
from fslab.store import database_errors, readonly
from fslab.store.database_errors import translated
from fslab.store.rows import from_json
from fslab.store.schema import SCHEMA, VERSION_TABLE, create_tables, metadata, sqlite_triggers
from fslab.system import files, paths

BUSY_TIMEOUT_S = 30.0
_LOOK_EVERY = 100_000  # steps of SQLite's virtual machine: some milliseconds
WRITING = "fslab_writing"  # execution option: take SQLite's write lock when the transaction begins
_TAKE_ALL = ("UTF8", "SQL_ASCII")  # PostgreSQL encodings for any text; SQL_ASCII keeps bytes as they are
_CREATION_LOCK = 0x66736C6162  # PostgreSQL advisory lock, "fslab"


def default_path() -> Path:
    """Return ``$XDG_DATA_HOME/fslab/store.sqlite``, by default below ``~/.local/share`` (XDG Base Directory 0.8)."""
    return paths.data() / "store.sqlite"


def store_url(where: str | None) -> URL:
    """Return the URL of the database that ``--store`` names: a path, an SQLAlchemy URL, or None for the default."""
    if where is None:
        return URL.create("sqlite", database=str(default_path()))
    if "://" not in where:
        return URL.create("sqlite", database=str(Path(where).expanduser().absolute()))
    try:
        return make_url(where)
    except (ArgumentError, ValueError):  # ValueError: the port is not a number
        # Do not show the text itself: it may contain a password.
        raise StoreError(
            "not a path or a database URL", where=where.partition("://")[0], hint=_URL_HINT
        ) from None


_URL_HINT = "give a path, or a URL such as postgresql+psycopg://user@host/database"


def place_of(url: URL) -> str:
    """Return what to show to a user: the file of an SQLite store, else the URL without its passwords."""
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    secret = dict.fromkeys(_passwords(url), "***")
    return url.update_query_dict(secret).render_as_string(hide_password=True)


def store_option(place: str) -> str:
    """Return what commands need to use the store at ``place``: `` --store PLACE``; empty if they do by themselves."""
    with contextlib.suppress(StoreError):  # what the variable names is no store
        if place == place_of(store_url(os.environ.get("FSLAB_STORE") or None)):
            return ""
    return f" --store {shlex.quote(place)}"


def has_password(where: str) -> bool:
    """Return whether the URL of a store contains a password."""
    url = store_url(where)
    return url.password is not None or bool(_passwords(url))


def _passwords(url: URL) -> list[str]:
    return [name for name in url.query if "password" in name.lower()]  # libpq reads them there too


def open_engine(url: URL, *, create: bool = True) -> Engine:
    """Return an engine of a store with this program's schema. Creates the store if ``create``."""
    place = place_of(url)
    reading = None
    if url.get_backend_name() == "sqlite" and "uri" in url.query:
        # The name would mean another file than the one that is checked.
        raise StoreError("a URL of SQLite cannot have 'uri'", where=place, hint="give the path of the file")
    if url.get_backend_name() == "sqlite":
        if not create:
            _check_there(url)
            reading = _connector(url)
        else:
            _make_directory(url)
    try:
        engine = create_engine(
            url, pool_pre_ping=True, json_deserializer=from_json, hide_parameters=True, **_options(url, reading)
        )  # fmt: skip
    except NoSuchModuleError as error:
        what = f"no such kind of database: {url.drivername}"
        raise StoreError(what, where=place, hint=_URL_HINT) from error
    except ModuleNotFoundError as error:
        hint = "pip install '.[postgresql]'" if url.drivername == "postgresql+psycopg" else _URL_HINT
        what = f"the database driver '{error.name}' is not installed"
        raise StoreError(what, where=place, hint=hint) from error
    _configure(engine, reading)
    try:
        with translated(place):
            if create and engine.dialect.name == "postgresql":
                _check_encoding(engine, place)
            _create_if_new(engine, place)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _configure(engine: Engine, reading: readonly.Connector | None) -> None:
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_reading if reading else _configure_sqlite)
        database = engine.url.database
        if not reading and database and database != ":memory:":
            place = os.path.abspath(database)  # noqa: PTH100 - as SQLAlchemy does
            event.listen(engine, "connect", lambda _, record: record.info.update({_File: _File.of(place)}))
        event.listen(engine, "begin", _begin_sqlite)
        event.listen(engine, "before_cursor_execute", _begin_statement)
    elif engine.url.drivername == "postgresql+psycopg":
        event.listen(engine, "connect", _configure_postgresql)
        event.listen(engine, "begin", _begin_postgresql)
    if isinstance(reading, readonly.CopyConnector):
        event.listen(engine, "engine_disposed", reading.close)


def _options(url: URL, reading: readonly.Connector | None) -> dict[str, Any]:
    if url.drivername == "postgresql+psycopg":
        # Otherwise a database in SQL_ASCII returns bytes.
        return {"connect_args": {"client_encoding": "utf8"}}
    return {"creator": reading} if reading else {}


def _check_there(url: URL) -> None:
    """Raise StoreError if a store that is only read does not exist: a mistyped path must not create an empty store."""
    try:
        there = url.database in {None, "", ":memory:"} or Path(str(url.database)).exists()
    except OSError as error:
        raise StoreError(f"cannot be opened: {error.strerror}", where=place_of(url)) from error
    if not there:
        hint = "fslab run creates it; to use another one: --store"
        if url == store_url(None):
            root = not os.geteuid()
            other = "other users are in their own stores" if root else "'sudo fslab run' are in root's store"
            hint = f"fslab run creates it; results of {other}: use sudo for both or neither, or --store FILE for both"
        raise NotStoredError("the store does not exist", where=place_of(url), hint=hint)


def _connector(url: URL) -> readonly.Connector | None:
    try:
        return readonly.connector(url.database)
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror}", where=place_of(url)) from error


def _make_directory(url: URL) -> None:
    if not url.database or url.database == ":memory:":
        return
    path = Path(url.database)
    if path.is_dir():
        raise StoreError("is a directory", where=str(path), hint="name the file inside it")
    try:
        check_closed(path)
        files.make_directories(path.parent)
        check_closed(path)
        readonly.check_journal(path)
    except OSError as error:
        raise StoreError(f"cannot make its directory: {error.strerror}", where=str(path)) from error


def check_closed(path: Path) -> None:
    """Raise UnsafeError if another user can put files beside a store that is written."""
    if why := readonly.stranger(path):
        raise UnsafeError(
            f"not written: {why}, who could make SQLite delete other files",
            where=str(path),
            hint="name a file in a directory that only you can write to (--store); others are only read (create=False)",
        )


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


def _check_encoding(engine: Engine, place: str) -> None:
    """Raise StoreError if the database cannot store every text: else it could refuse a trial after its measurement."""
    with engine.connect() as connection:
        found = connection.execute(text("SHOW server_encoding")).scalar()
    if found not in _TAKE_ALL:
        hint = "create one: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        raise StoreError(f"the encoding of the database is {found}: UTF8 is required", where=place, hint=hint)


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


def _create_if_new(engine: Engine, place: str) -> None:
    with engine.connect() as connection:
        if not _is_new(connection, place):
            return
    with engine.connect().execution_options(**{WRITING: True}) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})
        if _is_new(connection, place):  # else another process was faster
            create_tables(connection)


def _is_new(connection: Connection, place: str) -> bool:
    """Return whether the database is empty. StoreError if it has another schema, or is another program's."""
    names = inspect(connection).get_table_names()
    if VERSION_TABLE not in names:
        if names and connection.dialect.name == "sqlite":
            raise StoreError("is the database of another program", where=place, hint="give another path")
        return True
    if connection.dialect.name == "sqlite":
        _check_tables(connection, place)
    found = connection.execute(select(table(VERSION_TABLE, column("version_num")))).scalar()
    if found != SCHEMA:
        what = f"the store has schema {found}, and this fslab reads only schema {SCHEMA}"
        hint = "use the fslab that wrote it, or give another store with --store"
        raise StoreError(what, where=place, hint=hint)
    return False


def _check_tables(connection: Connection, place: str) -> None:
    """Raise StoreError if a value of a table is not stored but computed: a file of some kilobytes could have terabytes.

    That is in views and virtual tables (root page 0), generated columns (hidden) and defaults; fslab has none. Triggers
    of others could change what fslab stores.
    """
    computed = connection.exec_driver_sql(
        "SELECT m.name FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c WHERE m.type IN ('table', 'view') "
        "AND (m.rootpage = 0 OR c.hidden OR c.dflt_value IS NOT NULL)"
    ).scalars()
    triggers = connection.exec_driver_sql(
        "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
    )
    own, made = {VERSION_TABLE, *metadata.tables}, {*sqlite_triggers()}
    foreign = [f"table '{name}'" for name in computed if name.lower() in own]
    foreign += [f"trigger '{name}'" for name, on, sql in triggers if on.lower() in own and sql not in made]
    if foreign:
        what = f"{foreign[0]} is not one that fslab made"
        raise StoreError(what, where=place, hint="give another store with --store")
