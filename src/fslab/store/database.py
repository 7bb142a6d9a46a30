"""Opens a store's database, checks that it is one of this program's, and creates its tables.

Must not depend on campaigns and trials.
"""

import os
import stat
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, inspect, select, table, text
from sqlalchemy.exc import NoSuchModuleError
from sqlalchemy.sql import column

from fslab.errors import NotStoredError, StoreError, UnsafeError
from fslab.store import connections, readonly
from fslab.store.database_errors import translated
from fslab.store.rows import from_json
from fslab.store.schema import SCHEMA, VERSION_TABLE, create_tables, metadata, sqlite_triggers
from fslab.store.store_url import URL_HINT, file_of, place_of, store_url
from fslab.system import files

_SQLITE = b"SQLite format 3\0"  # sqlite.org/fileformat2.html, "Magic Header String"
_TAKE_ALL = ("UTF8", "SQL_ASCII")  # PostgreSQL encodings for any text; SQL_ASCII keeps bytes as they are
_CREATION_LOCK = 0x66736C6162  # PostgreSQL advisory lock, "fslab"


def open_engine(url: URL, *, create: bool = True) -> Engine:
    """Return an engine of a store with this program's schema. Creates the store if ``create``."""
    place = place_of(url)
    reading = None
    if url.get_backend_name() == "sqlite" and "uri" in url.query:
        # The name would mean another file than the one that is checked.
        raise StoreError("a URL of SQLite cannot have 'uri'", where=place, hint="give the path of the file")
    if file := file_of(url):
        there = _is_there(file)
        if create:
            _make_directory(file)
        elif there:
            reading = _connector(file)
        else:
            raise _missing(url)
    try:
        engine = create_engine(
            url, pool_pre_ping=True, json_deserializer=from_json, hide_parameters=True, **_options(url, reading)
        )  # fmt: skip
    except NoSuchModuleError as error:
        what = f"no such kind of database: {url.drivername}"
        raise StoreError(what, where=place, hint=URL_HINT) from error
    except ModuleNotFoundError as error:
        hint = "pip install '.[postgresql]'" if url.drivername == "postgresql+psycopg" else URL_HINT
        what = f"the database driver '{error.name}' is not installed"
        raise StoreError(what, where=place, hint=hint) from error
    connections.configure(engine, reading)
    try:
        with translated(place):
            if create and engine.dialect.name == "postgresql":
                _check_encoding(engine, place)
            if engine.dialect.name == "postgresql":
                with engine.connect() as connection:
                    _check_owners(connection, place)
            _create_if_new(engine, url, create=create)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _options(url: URL, reading: readonly.Connector | None) -> dict[str, Any]:
    if url.drivername == "postgresql+psycopg":
        # Otherwise a database in SQL_ASCII returns bytes, and a statement is run before ``_check_owners``.
        return {"connect_args": {"client_encoding": "utf8"}, "use_native_hstore": False}
    return {"creator": reading} if reading else {}


def _is_there(path: Path) -> bool:
    """Return whether the file exists and is not empty. StoreError for what is no database, before SQLite opens it: of a
    disk, it reads the size as 0, and its tables would replace what is there; beside another file, it removes what has
    the names of its journals."""
    head = b""
    try:
        mode = path.stat().st_mode  # once: another process may just create the file
        if stat.S_ISREG(mode):
            with path.open("rb") as file:
                head = file.read(len(_SQLITE))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreError(f"cannot be opened: {error.strerror}", where=str(path)) from error
    if stat.S_ISDIR(mode):
        raise StoreError("is a directory", where=str(path), hint="name the file inside it")
    if not stat.S_ISREG(mode):
        raise StoreError("is not a regular file", where=str(path), hint="name the file of a store (--store)")
    if head not in {b"", _SQLITE}:
        raise StoreError("file is not a database", where=str(path), hint="name the file of a store (--store)")
    return bool(head)


def _missing(url: URL) -> NotStoredError:
    """Return the error for a store that is only read: a mistyped path must not create an empty one."""
    hint = "fslab run creates it; to use another one: --store"
    if url == store_url(None):
        root = not os.geteuid()
        other = "other users are in their own stores" if root else "'sudo fslab run' are in root's store"
        hint = f"fslab run creates it; results of {other}: use sudo for both or neither, or --store FILE for both"
    return NotStoredError("the store does not exist", where=place_of(url), hint=hint)


def _connector(path: Path) -> readonly.Connector | None:
    try:
        return readonly.connector(path)
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror}", where=str(path)) from error


def _make_directory(path: Path) -> None:
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
            hint="name a file in a directory that only you can write to (--store)",
        )


# What PostgreSQL could take for a table of the store, or for one of its own functions and operators: for a call, it
# prefers the one whose types fit best, in whichever schema of the search path.
_FOREIGN = """
WITH path AS (SELECT oid FROM pg_namespace WHERE nspname = ANY (CAST(:schemas AS name[]))),
  here (kind, name, owner) AS (
    SELECT 'table', relname, relowner FROM pg_class
      WHERE relnamespace IN (SELECT oid FROM path) AND relname = ANY (CAST(:tables AS name[]))
    UNION ALL SELECT 'function', proname, proowner FROM pg_proc AS each WHERE pronamespace IN (SELECT oid FROM path)
      AND EXISTS (SELECT FROM pg_proc WHERE proname = each.proname AND pronamespace = :server)
    UNION ALL SELECT 'operator', oprname, oprowner FROM pg_operator AS each WHERE oprnamespace IN (SELECT oid FROM path)
      AND EXISTS (SELECT FROM pg_operator WHERE oprname = each.oprname AND oprnamespace = :server)),
  trusted AS (SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user
    UNION SELECT datdba FROM pg_database WHERE datname = current_database()
    UNION SELECT owner FROM here WHERE kind = 'table' AND name = CAST(:version AS name))
SELECT kind, name, rolname FROM here JOIN pg_roles ON oid = owner WHERE owner NOT IN (SELECT oid FROM trusted) LIMIT 1
""".replace(":server", "CAST('pg_catalog' AS regnamespace)")


def _check_owners(connection: Connection, place: str) -> None:
    """Raise StoreError if another role than the owner of the database or of the store can have code run with the rights
    of whoever reads the store. Such code remains after the role lost the right to create it."""
    schemas = connection.execute(text("SELECT current_schemas(false)")).scalar_one()
    # Else the comparisons of this very statement could be that code.
    connection.execute(text("SET LOCAL search_path = pg_catalog"))
    about = {"schemas": schemas, "version": VERSION_TABLE, "tables": [VERSION_TABLE, *metadata.tables]}
    if found := connection.execute(text(_FOREIGN), about).first():
        kind, name, owner = found
        raise StoreError(
            f"the {kind} '{name}' belongs to the role '{owner}': it would run with the rights of whoever reads the "
            "store",
            where=place,
            hint=f'find out what that role did; as a superuser, in this database: DROP OWNED BY "{owner}"; then: '
            "fslab store grant",
        )


def _check_encoding(engine: Engine, place: str) -> None:
    """Raise StoreError if the database cannot store every text: else it could refuse a trial after its measurement."""
    with engine.connect() as connection:
        found = connection.execute(text("SHOW server_encoding")).scalar()
    if found not in _TAKE_ALL:
        hint = "create one: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        raise StoreError(f"the encoding of the database is {found}: UTF8 is required", where=place, hint=hint)


def _create_if_new(engine: Engine, url: URL, *, create: bool) -> None:
    """Create the tables if there are none. NotStoredError instead if not ``create``."""
    place = place_of(url)
    with engine.connect() as connection:
        if not _is_new(connection, place):
            return
    if not create:
        raise _missing(url)
    with engine.connect().execution_options(**{connections.WRITING: True}) as connection, connection.begin():
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
