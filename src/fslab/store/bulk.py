"""Inserts many rows with the fastest method of the database, and reads them back to compare.

On PostgreSQL this is COPY in its binary format: an INSERT per row takes the server about ten times as long. Errors are
those of SQLAlchemy, as for any other statement.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    Select,
    Table,
    TypeDecorator,
    insert,
)
from sqlalchemy.exc import DBAPIError, StatementError

from fslab.store.rows import Row
from fslab.store.schema import Utc, WideInteger

Values = tuple[Any, ...]


def has_copy(connection: Connection) -> bool:
    """Return whether the database takes COPY through its driver."""
    return connection.dialect.driver == "psycopg"


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert ``rows``, which have all columns of the table, by name."""
    if not rows:
        return
    if has_copy(connection):
        names = table.c.keys()
        copy_in(connection, table, as_sent(table, (tuple(row[name] for name in names) for row in rows)))
    else:
        connection.execute(insert(table), rows)


def as_sent(table: Table, rows: Iterable[Values]) -> list[Values]:
    """Return rows with the values that COPY takes: JSON documents and wide integers as texts."""
    changed = [
        (place, json.dumps if isinstance(column.type, JSON) else str)
        for place, column in enumerate(table.c)
        if isinstance(column.type, JSON | WideInteger)
    ]
    if not changed:
        return list(rows)
    made = []
    for row in rows:
        values = list(row)
        for place, change in changed:
            values[place] = change(values[place])
        made.append(tuple(values))
    return made


def copy_in(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """Insert rows in the form of ``as_sent``, with all columns of the table."""
    if not rows:
        return
    statement = f"COPY {table.name} ({', '.join(table.c.keys())}) FROM STDIN (FORMAT BINARY)"
    with _cursor(connection, statement) as cursor, cursor.copy(statement) as to:
        to.set_types([_type(column) for column in table.c])
        for row in rows:
            to.write_row(row)


def read_back(connection: Connection, table: Table, key: Column[Any], numbers: Sequence[int]) -> list[Values]:
    """Return the rows whose column ``key`` is one of ``numbers``, in the form of ``as_sent``.

    Ordered by the primary key; texts by code point.
    """
    columns = (f"{each.name}::text" if isinstance(each.type, JSON) else each.name for each in table.c)
    order = (f'{each.name} COLLATE "C"' if _type(each) == "text" else each.name for each in table.primary_key)
    statement = (
        f"SELECT {', '.join(columns)} FROM {table.name} "  # noqa: S608 - names of the schema only
        f"WHERE {key.name} = ANY(%s) ORDER BY {', '.join(order)}"
    )
    with _cursor(connection, statement, binary=True) as cursor:
        found: list[Values] = cursor.execute(statement, [list(numbers)]).fetchall()
        return found


def read(connection: Connection, wanted: Select[Any], table: Table) -> Sequence[Values]:
    """Return the rows of a statement that selects whole rows of ``table``.

    As the driver returns them where no column has a type of its own: SQLAlchemy's rows take as long as reading them.
    """
    found = connection.execute(wanted)
    if any(isinstance(column.type, JSON | TypeDecorator) for column in table.c):
        return [tuple(row) for row in found]
    cursor: Any = found.cursor
    rows: list[Values] = cursor.fetchall()
    found.close()
    return rows


def _type(column: Column[Any]) -> str:
    """Return PostgreSQL's type of what is sent. A JSON document is sent as its text."""
    match column.type:
        case Utc() | DateTime():
            return "timestamptz"
        case Float():
            return "float8"
        case BigInteger():
            return "int8"
        case Integer():
            return "int4"
        case LargeBinary():
            return "bytea"
        case _:
            return "text"


@contextmanager
def _cursor(connection: Connection, statement: str, **options: Any) -> Iterator[Any]:
    """Yield a cursor of the driver, and raise its errors as SQLAlchemy does."""
    driver: Any = connection.connection.dbapi_connection
    kinds: Any = connection.dialect.loaded_dbapi
    try:
        with driver.cursor(**options) as cursor:
            yield cursor
    except kinds.Error as error:
        is_lost = connection.dialect.is_disconnect(error, driver, None)
        if is_lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            statement, None, error, kinds.Error, connection_invalidated=is_lost, dialect=connection.dialect
        ) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise StatementError(str(error), statement, None, ValueError(f"{error} ({statement})")) from error
