"""SQLite, in Python's version: a transaction inserts one row and updates one counter, in each journal mode.

Sources of its promises: sqlite.org/pragma.html#pragma_synchronous and sqlite.org/wal.html.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fslab.applications import Application, Contract, RecoveredData, Settings
from fslab.storage.promises import Promise, Promises

FILE = "database"
_PRAGMA = "sqlite.org/pragma.html#pragma_synchronous"


class Sqlite(Application):
    """The defaults of the settings are those of SQLite."""

    summary = "SQLite: are committed transactions there after a power cut, by journal_mode and synchronous"
    settings = {
        "journal_mode": ("delete", "truncate", "persist", "wal", "memory", "off"),
        "synchronous": ("full", "extra", "normal", "off"),
    }

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return the promises. FULL is durable, except in the journal mode DELETE, which needs EXTRA."""
        mode, synchronous = settings["journal_mode"], settings["synchronous"]
        journalled = mode not in {"memory", "off"}
        strict = synchronous in {"full", "extra"}
        durable = journalled and (synchronous == "extra" or (synchronous == "full" and mode != "delete"))
        consistent = journalled and (strict or (synchronous == "normal" and mode == "wal"))
        return Contract(
            durable=Promise(given=durable, source=f"{_PRAGMA}: {_DURABLE if durable else _NOT_DURABLE}"),
            consistent=Promise(given=consistent, source=f"{_PRAGMA}: {_SAFE if consistent else _UNSAFE}"),
        )

    def lay_out(self, directory: Path, settings: Settings) -> None:
        """Create an empty table, and a table with a counter."""
        with closing(_connected(directory, settings, mode="rwc")) as database:
            database.execute("CREATE TABLE transactions (number INTEGER PRIMARY KEY, contents BLOB)")
            database.execute("CREATE TABLE counter (last INTEGER)")
            database.execute("INSERT INTO counter VALUES (0)")

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Open one connection for all transactions."""
        with closing(_connected(directory, settings)) as database:

            def commit(number: int, contents: bytes) -> None:
                database.execute("BEGIN IMMEDIATE")
                database.execute("INSERT INTO transactions VALUES (?, ?)", (number, contents))
                database.execute("UPDATE counter SET last = ?", (number,))
                database.execute("COMMIT")

            yield commit

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Open the database, which rolls a journal back or reads the write-ahead log; check it, and read the rows."""
        try:
            with closing(_connected(directory, None)) as database:
                (told,) = database.execute("PRAGMA integrity_check(1)").fetchone()
                rows = dict(database.execute("SELECT number, contents FROM transactions").fetchall())
                (last,) = database.execute("SELECT last FROM counter").fetchone()
        except (sqlite3.Error, TypeError) as error:
            return RecoveredData(problem=f"cannot read the database: {error}")
        if told != "ok":
            return RecoveredData(problem=f"integrity_check: {told}")
        if last != max(rows, default=0) or len(rows) != last:
            return RecoveredData(
                problem=f"a partial transaction: the counter is {last}, but there are {len(rows)} rows"
            )
        for number, found in rows.items():
            if found != contents(number):
                return RecoveredData(problem=f"transaction {number} has other contents than were committed")
        return RecoveredData(transactions=frozenset(rows))


_DURABLE = "'FULL' and 'EXTRA' synchronise before a commit returns"
_NOT_DURABLE = "a commit may roll back after a power loss"
_SAFE = "a power failure does not corrupt the database"
_UNSAFE = "the database might become corrupted if power is lost"


def _connected(directory: Path, settings: Settings | None, *, mode: str = "rw") -> sqlite3.Connection:
    database = sqlite3.connect(f"{(directory / FILE).as_uri()}?mode={mode}", uri=True, isolation_level=None)
    for name, value in (settings or {}).items():
        database.execute(f"PRAGMA {name} = {value}")
    return database
