"""MariaDB with InnoDB, whose commits are acknowledged when they return: sysbench measures it.

For crash tests a transaction inserts one row and updates one counter. Sources of its promises:
mariadb.com/docs/server, "InnoDB System Variables".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field

from fslab import scaling
from fslab.applications import (
    Contract,
    Driven,
    DriveRequest,
    DurableApplication,
    Load,
    RecoveredData,
    Settings,
    setting,
)
from fslab.applications import _mariadb as server
from fslab.applications import _servers as servers
from fslab.applications._servers import DamagedError
from fslab.storage.crash_promises import Promise, Promises
from fslab.units import SomeSize, parse_size

_DOCS = "InnoDB System Variables"
_ROW_BYTES = 250  # of sysbench's tables, with its index
_LAID_OUT_PER_S = 30_000.0
# A small log and cache, for recordings.
_SMALL = {"innodb_log_file_size": "4M", "innodb_buffer_pool_size": "8M"}
_CREATED = (
    f"CREATE DATABASE {server.DATABASE}",
    f"USE {server.DATABASE}",
    "CREATE TABLE transactions (number INT PRIMARY KEY, contents LONGBLOB) ENGINE=InnoDB",
    "CREATE TABLE counter (last INT) ENGINE=InnoDB",
    "INSERT INTO counter VALUES (0)",
)


class MariadbLoad(Load):
    """The server is the trial's own, and runs as the user `nobody`, with a socket and no port. A transaction is one of
    sysbench's. Afterwards a new server checks the tables (`CHECK TABLE … EXTENDED`) and counts their rows. Latencies
    are of sysbench's histogram, whose buckets are 2 % wide."""

    laid_out = frozenset({"tables", "rows", "log_file_size"})

    test: Literal["oltp_read_write", "oltp_write_only", "oltp_read_only"] = Field(
        "oltp_read_write", description="sysbench's test"
    )
    tables: int = Field(1, ge=1, le=1000, description="number of tables")
    rows: int = Field(10_000, ge=100, le=1_000_000_000, description="rows of each table")
    clients: int = Field(4, ge=1, le=1000, description="connections that run transactions at once")
    buffer_pool: SomeSize = Field("128m", description="innodb_buffer_pool_size")
    log_file_size: SomeSize = Field("96m", description="innodb_log_file_size")
    innodb_flush_log_at_trx_commit: Literal["1", "2", "0"] = setting(
        "1",
        "1: the log is written and synced at each commit; 2: written at each, synced once per second; 0: both once per "
        "second",
    )
    innodb_doublewrite: Literal["on", "off"] = setting(
        "on", "pages are written twice: without it, a power cut in the middle of a page corrupts it"
    )

    @property
    def at_once(self) -> int:
        return self.clients

    @property
    def reads(self) -> bool:
        return self.test != "oltp_write_only"

    @property
    def writes(self) -> bool:
        return self.test != "oltp_read_only"

    @property
    def guessed_rate(self) -> float:
        return 2000.0

    @property
    def prepare_s(self) -> float:
        return 3 + self.tables * self.rows / _LAID_OUT_PER_S

    @property
    def space_bytes(self) -> int:
        return 2 * self.tables * self.rows * _ROW_BYTES + parse_size(self.log_file_size)

    def scaled(self, factor: float) -> scaling.Changes:
        return {**super().scaled(factor), "rows": scaling.count(self.rows, factor, least=100)}

    def options(self) -> dict[str, str]:
        sizes = {"innodb_buffer_pool_size": self.buffer_pool, "innodb_log_file_size": self.log_file_size}
        return {**self.settings(), **{name: str(parse_size(size)) for name, size in sizes.items()}}


class Mariadb(DurableApplication):
    """The defaults of the settings are those of MariaDB."""

    summary = "MariaDB: sysbench's OLTP tests, by innodb_flush_log_at_trx_commit"
    tools = (server.TOOL, server.CLIENT, server.SYSBENCH)
    transaction_s = 0.01
    laid_out_bytes = 60 << 20
    continues = "sysbench measures by the clock"
    Load = MariadbLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return the promises. A page that is there in part can be recovered only from the doublewrite buffer."""
        consistent = settings["innodb_doublewrite"] == "on"
        durable = consistent and settings["innodb_flush_log_at_trx_commit"] == "1"
        return Contract(
            durable=Promise(given=durable, source=f"{_DOCS}: {_DURABLE if durable else _NOT_DURABLE}"),
            consistent=Promise(given=consistent, source=f"{_DOCS}: {_SAFE if consistent else _UNSAFE}"),
        )

    def prepare(self, drive: DriveRequest) -> None:
        """Fill sysbench's tables. The server is shut down: its data is complete without the log."""
        servers.own_directory(drive.directory)
        options = {**drive.load.options(), "innodb_flush_log_at_trx_commit": "0"}
        with server.running(drive.directory, options) as mariadb:
            mariadb.say(_CREATED[0])
            mariadb.sysbench(drive, "prepare")

    def drive(self, drive: DriveRequest) -> Driven:
        load = drive.load
        with server.running(drive.directory, load.options()) as mariadb:
            driven = server.measured(mariadb, drive)
        try:
            with server.running(drive.directory, load.options()) as mariadb:
                problems = (
                    _problem(mariadb, f"sbtest{number + 1}", load.rows) for number in range(load.tables)
                )
                return driven.checked(next(filter(None, problems), None))
        except DamagedError as error:
            return driven.checked(str(error))

    def lay_out(self, directory: Path, settings: Settings) -> None:
        """Create two tables."""
        servers.own_directory(directory)
        with server.running(directory, {**_SMALL, **settings}) as mariadb:
            for statement in _CREATED:
                mariadb.say(statement)

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Start one server for all transactions."""
        with server.running(directory, {**_SMALL, **settings}) as mariadb:
            mariadb.say(f"USE {server.DATABASE}")

            def commit(number: int, contents: bytes) -> None:
                mariadb.say(  # only numbers and hexadecimal digits
                    f"BEGIN; INSERT INTO transactions VALUES ({number}, X'{contents.hex()}'); "  # noqa: S608
                    f"UPDATE counter SET last = {number}; COMMIT"
                )

            yield commit

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Start the server, which replays its log; check the tables, and read them."""
        try:
            with server.running(directory, _SMALL) as mariadb:
                mariadb.say(f"USE {server.DATABASE}")
                problem = mariadb.problem("transactions") or mariadb.problem("counter")
                rows = [
                    line.split("\t")
                    for line in mariadb.say("SELECT number, MD5(contents) FROM transactions").splitlines()
                ]
                last = mariadb.say("SELECT last FROM counter").strip()
        except DamagedError as error:
            return RecoveredData(problem=str(error))
        if problem is not None:
            return RecoveredData(problem=problem)
        numbers = [int(number) for number, _ in rows]
        if sorted(numbers) != list(range(1, len(numbers) + 1)) or last != str(len(numbers)):
            return RecoveredData(
                problem=f"a partial transaction: the counter is {last}, but there are {len(numbers)} rows"
            )
        for number, digest in rows:
            if digest != hashlib.md5(contents(int(number)), usedforsecurity=False).hexdigest():
                return RecoveredData(problem=f"transaction {number} has other contents than were committed")
        return RecoveredData(transactions=frozenset(numbers))


def _problem(mariadb: server.MariadbServer, table: str, rows: int) -> str | None:
    """Return what is wrong with a table of sysbench's, whose transactions leave as many rows as there were."""
    found = mariadb.problem(f"{server.DATABASE}.{table}")
    there = mariadb.say(f"SELECT COUNT(*) FROM {server.DATABASE}.{table}").strip()  # noqa: S608
    return found or (None if there == str(rows) else f"{table} has {there} rows, and not {rows}")


_DURABLE = "innodb_flush_log_at_trx_commit 1: the log is written and synced at each commit"
_NOT_DURABLE = "the transactions of the last second may be lost"
_SAFE = "innodb_doublewrite: a page of which only a part was written is recovered"
_UNSAFE = "without innodb_doublewrite, a page of which only a part was written cannot be recovered"
