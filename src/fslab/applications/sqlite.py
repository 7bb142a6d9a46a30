"""SQLite, in Python's version: a transaction inserts rows and updates one counter, or reads rows, in each journal mode.

Sources of its promises: sqlite.org/pragma.html#pragma_synchronous and sqlite.org/wal.html.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from fslab.applications import (
    Contract,
    Driven,
    DriveRequest,
    DurableApplication,
    Populated,
    RecoveredData,
    Settings,
    repeated,
    setting,
)
from fslab.errors import ToolFailedError
from fslab.storage.crash_promises import Promises
from fslab.system import untrusted_files

FILE = "database"
_ROW_BYTES = 32  # of a row, besides its contents
_TRANSACTIONS = "CREATE TABLE transactions (number INTEGER PRIMARY KEY, contents BLOB)"
_INSERT = "INSERT INTO transactions VALUES (?, ?)"
_COUNT = "UPDATE counter SET last = ?"
_COUNTER = "CREATE TABLE counter (last INTEGER)"


class SqliteLoad(Populated):
    """One connection. A transaction inserts `batch` rows and updates a counter, or reads `range` rows from a random one
    on. Afterwards `integrity_check` must find nothing, and number and contents of the rows must be right."""

    laid_out = frozenset({"journal_mode", "rows", "size"})
    amount, usual, made_per_s = "rows", 100_000, 200_000.0
    begins_empty, reading, writing = "insert", frozenset({"read"}), frozenset({"insert"})

    operation: Literal["insert", "read"] = Field("insert", description="what a transaction does")
    rows: int | None = Field(
        None, ge=1, le=1_000_000_000,
        description="rows in the table before; default: 100,000 for `read`, otherwise none",
    )  # fmt: skip
    batch: int = Field(1, ge=1, le=1_000_000, description="rows that a transaction inserts")
    range: int = Field(100, ge=1, le=1_000_000, description="rows that a transaction reads")
    journal_mode: Literal["delete", "truncate", "persist", "wal", "memory", "off"] = setting(
        "delete",
        "how a transaction is undone: by a rollback journal that is deleted, truncated or overwritten, or by a "
        "write-ahead log (wal). With memory and off, a power cut can corrupt the database",
    )
    synchronous: Literal["full", "extra", "normal", "off"] = setting(
        "full",
        "what is synced: full: each transaction, which is durable except with journal_mode delete; extra: also the "
        "directory; normal: with wal only checkpoints, so that the last transactions may be lost; off: nothing",
    )

    @property
    def guessed_rate(self) -> float:
        return 3000.0 / (1 + self.batch / 100) if self.writes else 20_000.0

    @property
    def space_bytes(self) -> int:
        made = self.most * self.batch if self.writes else 0
        return 2 * (self.there + made) * (self.size_bytes + _ROW_BYTES) + (1 << 20)

    @model_validator(mode="after")
    def _of_its_operation(self) -> Self:
        other = {"insert": "range", "read": "batch"}[self.operation]
        if other in self.model_fields_set and self.value_of(other) != type(self).model_fields[other].default:
            raise ValueError(f"'{other}' is not supported by operation: {self.operation}")
        return self


class Sqlite(DurableApplication):
    """The defaults of the settings are those of SQLite."""

    summary = "SQLite: inserts and reads, by journal_mode and synchronous"
    Load = SqliteLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return the promises. FULL is durable, except in the journal mode DELETE, which needs EXTRA."""
        mode, synchronous = settings["journal_mode"], settings["synchronous"]
        journalled = mode not in {"memory", "off"}
        strict = synchronous in {"full", "extra"}
        durable = journalled and (synchronous == "extra" or (synchronous == "full" and mode != "delete"))
        consistent = journalled and (strict or (synchronous == "normal" and mode == "wal"))
        return Contract.documented(
            "sqlite.org/pragma.html#pragma_synchronous",
            durable=(durable, "'FULL' and 'EXTRA' synchronise before a commit returns",
                     "a commit may roll back after a power loss"),
            consistent=(consistent, "a power failure does not corrupt the database",
                        "the database might become corrupted if power is lost"),
        )  # fmt: skip

    def lay_out(self, directory: Path, settings: Settings) -> None:
        with closing(_connected(directory, settings, mode="rwc")) as database:
            database.execute(_TRANSACTIONS)
            database.execute(_COUNTER)
            database.execute("INSERT INTO counter VALUES (0)")

    def prepare(self, drive: DriveRequest) -> None:
        super().prepare(drive)
        if drive.load.there:
            with _failing(), closing(_connected(drive.directory, drive.load.settings())) as database:
                _inserting(database, drive.contents, drive.load.there)(1)

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        with closing(_connected(directory, settings)) as database:
            yield lambda number, contents: _inserting(database, lambda _: contents)(number)

    def drive(self, drive: DriveRequest) -> Driven:
        load = drive.load
        with _failing(), closing(_connected(drive.directory, load.settings())) as database:
            if load.operation == "read":
                driven = repeated(drive, _reader(database, drive))
            else:
                driven = repeated(drive, _inserting(database, drive.contents, load.batch, load.there))
        last = load.there + (driven.count * load.batch if load.writes else 0)
        return self.verified(drive, driven, range(1, last + 1), "rows")

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Open the database, which rolls a journal back or reads the write-ahead log; check it, and read the rows."""
        if untrusted_files.journal_names_another_file(directory / f"{FILE}-journal"):
            return RecoveredData(problem="the journal names another file, and SQLite would delete that")
        try:
            with closing(_connected(directory, None)) as database:
                made = database.execute("SELECT sql FROM sqlite_master ORDER BY rowid").fetchall()
                if made != [(_TRANSACTIONS,), (_COUNTER,)]:  # a view can be endless
                    return RecoveredData(problem="the database has other tables than were made")
                (told,) = database.execute("PRAGMA integrity_check(1)").fetchone()
                (last,) = database.execute("SELECT last FROM counter").fetchone()
                rows = database.execute("SELECT number, contents FROM transactions")
                found = RecoveredData.of_rows(rows, contents, str(last))
        except (sqlite3.Error, TypeError) as error:
            return RecoveredData(problem=f"cannot read the database: {error}")
        return found if told == "ok" else RecoveredData(problem=f"integrity_check: {told}")


def _inserting(
    database: sqlite3.Connection, contents: Callable[[int], bytes], batch: int = 1, there: int = 0
) -> Callable[[int], None]:
    """Return a function that inserts the rows of a transaction, and updates the counter; a microsecond counts in it."""
    execute, many = database.execute, database.executemany

    def insert(number: int) -> None:
        last = there + number * batch
        execute("BEGIN IMMEDIATE")
        if batch == 1:  # executemany of one row takes 4 µs longer
            execute(_INSERT, (last, contents(last)))
        else:
            many(_INSERT, ((each, contents(each)) for each in range(last - batch + 1, last + 1)))
        execute(_COUNT, (last,))
        execute("COMMIT")

    return insert


def _reader(database: sqlite3.Connection, drive: DriveRequest) -> Callable[[int], None]:
    random, rows = drive.random(), drive.load.there
    length = min(rows, drive.load.range)

    def read(number: int) -> None:  # noqa: ARG001
        first = random.randint(1, rows - length + 1)
        found = database.execute(
            "SELECT contents FROM transactions WHERE number BETWEEN ? AND ?", (first, first + length - 1)
        ).fetchall()
        if len(found) != length:
            raise ToolFailedError(f"SQLite: {len(found)} of {length} rows from {first} on are there")

    return read


@contextmanager
def _failing() -> Iterator[None]:
    """Raise SQLite's errors as those of a tool."""
    try:
        yield
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, "No space left on device", FILE) from error
        raise ToolFailedError(f"SQLite: {error}") from error


def _connected(directory: Path, settings: Settings | None, *, mode: str = "rw") -> sqlite3.Connection:
    database = sqlite3.connect(f"{(directory / FILE).as_uri()}?mode={mode}", uri=True, isolation_level=None)
    for name, value in (settings or {}).items():
        database.execute(f"PRAGMA {name} = {value}")
    return database
