"""Connects to a store's database, brings its schema up to date, and turns database errors into StoreErrors.

SQLite runs in WAL mode with synchronous FULL: a committed trial survives power loss. Knows nothing of
campaigns and trials.
"""

import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, table, text
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    InternalError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.sql import column

from fslab.errors import StoreError, StoreLostError
from fslab.store import readonly
from fslab.store.rows import from_json
from fslab.store.schema import REVISIONS, VERSION_TABLE
from fslab.system import paths, signals

BUSY_TIMEOUT_S = 30.0
WRITING = "fslab_writing"  # execution option: take SQLite's write lock when the transaction begins
_TAKE_ALL = ("UTF8", "SQL_ASCII")  # PostgreSQL's encodings; the second keeps bytes as they are
_MIGRATION_LOCK = 0x66736C6162  # PostgreSQL advisory lock, "fslab"


def default_path() -> Path:
    """``$XDG_DATA_HOME/fslab/store.sqlite``, by default below ``~/.local/share`` (XDG Base Directory 0.8)."""
    return paths.data() / "store.sqlite"


def store_url(where: str | None) -> URL:
    """The database that ``--store`` means: a path, an SQLAlchemy URL, or None for the default path."""
    if where is None:
        return URL.create("sqlite", database=str(default_path()))
    if "://" not in where:
        return URL.create("sqlite", database=str(Path(where).expanduser().absolute()))
    try:
        return make_url(where)
    except (ArgumentError, ValueError):  # the second: a port that is no number
        # Not the text itself: it may hold a password.
        raise StoreError(
            "not a path or a database URL", where=where.partition("://")[0], hint=_URL_HINT
        ) from None


_URL_HINT = "give a path, or a URL such as postgresql+psycopg://user@host/database"


def place_of(url: URL) -> str:
    """What to show a user: the file of an SQLite store, else the URL without its passwords."""
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    secret = {name: "***" for name in url.query if "password" in name.lower()}  # libpq takes them there too
    return url.update_query_dict(secret).render_as_string(hide_password=True)


def open_engine(url: URL, *, create: bool = True) -> Engine:
    """An engine whose schema is this program's; migrates the store where needed, and makes it if ``create``."""
    place = place_of(url)
    reading = None
    if url.get_backend_name() == "sqlite":
        if not create:
            _check_there(url)
            reading = _connector(url)
        _make_directory(url)
    try:
        engine = create_engine(
            url, pool_pre_ping=True, json_deserializer=from_json, hide_parameters=True, **_options(url, reading)
        )  # fmt: skip
    except NoSuchModuleError as error:
        raise StoreError(
            f"no such kind of database: {url.drivername}", where=place, hint=_URL_HINT
        ) from error
    except ModuleNotFoundError as error:
        hint = "pip install '.[postgresql]'" if url.drivername == "postgresql+psycopg" else _URL_HINT
        raise StoreError(
            f"the database driver '{error.name}' is not installed", where=place, hint=hint
        ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_reading if reading else _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    elif url.drivername == "postgresql+psycopg":
        event.listen(engine, "connect", _configure_postgresql)
    if isinstance(reading, readonly.CopyConnector):
        event.listen(engine, "engine_disposed", reading.close)
    try:
        with translated(place):
            if create and engine.dialect.name == "postgresql":
                _check_encoding(engine, place)
            _bring_up_to_date(engine, place)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _options(url: URL, reading: readonly.Connector | None) -> dict[str, Any]:
    if url.drivername == "postgresql+psycopg":
        # A database in SQL_ASCII would give bytes.
        return {"connect_args": {"client_encoding": "utf8"}}
    return {"creator": reading} if reading else {}


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Database failures become StoreErrors that say where; anything else passes."""
    try:
        with signals.kept():
            yield
    except DBAPIError as error:
        kind = StoreLostError if _passes(error) else StoreError
        raise kind(_said(error), where=place, hint=_hint(str(error.orig))) from error
    except StatementError as error:
        raise StoreError(f"cannot store this value: {error.orig}", where=place) from error
    except SQLAlchemyError as error:
        raise StoreError(str(error), where=place) from error


@contextmanager
def believed(place: str) -> Iterator[None]:
    """What a store holds may be anybody's: content that is no campaign or trial of ours becomes a StoreError."""
    try:
        yield
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, zlib.error) as error:
        what = str(error) or type(error).__name__
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise StoreError(
            f"contains data that fslab did not write: {what[:300]}",
            where=place,
            hint="give another store with --store",
        ) from error


def _passes(error: DBAPIError) -> bool:
    """Whether it is the database's condition (PEP 249, OperationalError), not what was asked of it."""
    if not isinstance(error, OperationalError | InterfaceError | InternalError):
        return error.connection_invalidated
    said = str(error.orig)
    return not any(words in said for words in _LASTING)


def _said(error: DBAPIError) -> str:
    return f"message of the database: {' '.join(str(error.orig).split())}"


def _hint(said: str) -> str | None:
    hints = {
        "disk is full": "free space on the disk of the store",
        "not a database": "this file is not an fslab store; give another path with --store",
        "locked": "another process has locked the store for too long: end it, or try again later",
        "readonly": "this user cannot write the store or its directory: change permissions, or copy it elsewhere",
        "unable to open": "this user cannot open the store or its directory: change permissions, or use --store",
    }
    return next((hint for words, hint in hints.items() if words in said), None)


# What SQLite calls operational errors too.
_LASTING = ("readonly", "no such", "not a database", "has no column", "syntax error")


def _check_there(url: URL) -> None:
    """A store that is only to be read must be there: a mistyped path must not become an empty store."""
    try:
        there = url.database in {None, "", ":memory:"} or Path(str(url.database)).exists()
    except OSError as error:
        raise StoreError(f"cannot be opened: {error.strerror}", where=place_of(url)) from error
    if not there:
        raise StoreError(
            "the store does not exist",
            where=place_of(url),
            hint="fslab run creates it; to use another one: --store",
        )


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
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make its directory: {error.strerror}", where=str(path)) from error


def _configure_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say, in _begin_sqlite
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000:.0f}")
    _enter_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _configure_postgresql(connection: Any, _record: object) -> None:
    """A server may be set to lose what it has confirmed: a trial that is stored is on disk. It may also be set to write
    dates as the driver cannot read them, and numbers with fewer digits than they have."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('DateStyle', 'ISO', false), set_config('extra_float_digits', '1', false)"
        )
        cursor.execute("SELECT set_config('synchronous_commit', 'on', false) "
                       "WHERE current_setting('synchronous_commit') = 'off'")  # fmt: skip
    connection.commit()


def _check_encoding(engine: Engine, place: str) -> None:
    """What is to be written to must take every text; else a trial would be refused when it has been measured."""
    with engine.connect() as connection:
        found = connection.execute(text("SHOW server_encoding")).scalar()
    if found not in _TAKE_ALL:
        raise StoreError(
            f"the encoding of the database is {found}, and not UTF8", where=place,
            hint="create one: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0",
        )  # fmt: skip


def _configure_reading(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000:.0f}")
    connection.execute("PRAGMA query_only = ON")  # what would be written to a copy would be lost


def _enter_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for the lock that the change to WAL mode takes, whatever its busy timeout."""
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
    # a transaction that reads and then writes fails at once if another wrote meanwhile; IMMEDIATE waits
    immediate = connection.get_execution_options().get(WRITING)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _bring_up_to_date(engine: Engine, place: str) -> None:
    with engine.connect() as connection:
        if _revision(connection, place) == REVISIONS[-1]:
            return
    with engine.connect().execution_options(**{WRITING: True}) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        if _revision(connection, place) != REVISIONS[-1]:  # else another process was faster
            from fslab.store.migrations import upgrade  # noqa: PLC0415 - alembic is slow and rarely needed

            upgrade(connection)


def _revision(connection: Connection, place: str) -> str | None:
    """The schema's revision; None for an empty database; StoreError if it is none of ours."""
    names = inspect(connection).get_table_names()
    if VERSION_TABLE not in names:
        if names and connection.dialect.name == "sqlite":
            raise StoreError("is the database of another program", where=place, hint="give another path")
        return None
    found = connection.execute(select(table(VERSION_TABLE, column("version_num")))).scalar()
    if found is not None and found not in REVISIONS:
        raise StoreError(
            f"the store was written by a newer fslab (schema {found}; this one knows {REVISIONS[-1]})",
            where=place, hint="upgrade fslab, or give another store with --store",
        )  # fmt: skip
    return str(found) if found is not None else None
