"""MariaDB with InnoDB, whose commits are acknowledged when they return: sysbench measures it.

Its server runs as the user nobody, on a socket in its directory. It has no tables of users and plug-ins: the socket is
the only way to it, and data from elsewhere name no library that it would load. For crash tests a transaction inserts
one row and updates one counter. Sources of its promises: mariadb.com/docs/server, "InnoDB System Variables".
"""

from __future__ import annotations

import re
import signal
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
    digest,
    run_program,
    sampled,
    setting,
)
from fslab.applications import _servers as servers
from fslab.applications._servers import DamagedError
from fslab.errors import FslabError, ToolFailedError
from fslab.filesystem_abilities import Ability
from fslab.storage.crash_promises import Promises
from fslab.system import proc
from fslab.system.tool_messages import reports_shortage
from fslab.system.tools import Tool
from fslab.units import SomeSize, parse_size

TOOL = Tool(program="mariadbd", package="mariadb-server-core")
CLIENT = Tool(program="mariadb", package="mariadb-client-core")
SYSBENCH = Tool(program="sysbench", package="sysbench")
DATABASE = "fslab"
_SOCKET = "fslab.sock"
# Its statements read no file of the machine. The cache is not kept from one server to the next.
_OWN = {
    "secure_file_priv": servers.DESCRIPTORS, "socket": _SOCKET, "pid_file": "fslab.pid", "skip_networking": "on",
    "skip_grant_tables": "on", "symbolic_links": "off", "local_infile": "off",
    "innodb_buffer_pool_dump_at_shutdown": "off", "innodb_buffer_pool_load_at_startup": "off",
}  # fmt: skip
_ACCEPTING = "ready for connections"
_READY = b"ready>\n"
_FULL = re.compile(r"No space left on device|Error number 28\b|errno: 28\b|is full")
_TROUBLE = re.compile(r"^[\d-]+ +[\d:]+ \d+ \[ERROR\] (.*)$", re.MULTILINE)
# What the machine or another version is to blame for, and not the data. The client's own errors are those from 2000 on.
_ELSEWHERE = re.compile(
    r"can(?:not|'t) create thread|cannot map|error number 24\b|unknown (?:option|variable)|^ERROR 2\d{3}\b",
    re.IGNORECASE | re.MULTILINE,
)
_LOST = re.compile(r"^ERROR 20(?:06|13)\b", re.MULTILINE)
_DONE = re.compile(r"^ +total time: +([\d.]+)s\n +total number of events: +(\d+)$", re.MULTILINE)
_BUCKET = re.compile(r"^ +(\d+\.\d+) \|\**\s+(\d+)$", re.MULTILINE)
_ROW_BYTES = 250  # of sysbench's tables, with its index
_LAID_OUT_PER_S = 30_000.0
# A small log and cache, for recordings.
_SMALL = {"innodb_log_file_size": "4M", "innodb_buffer_pool_size": "8M"}
_CREATED = (
    f"CREATE DATABASE {DATABASE}",
    f"USE {DATABASE}",
    "CREATE TABLE transactions (number INT PRIMARY KEY, contents LONGBLOB) ENGINE=InnoDB",
    "CREATE TABLE counter (last INT) ENGINE=InnoDB",
    "INSERT INTO counter VALUES (0)",
)


class MariadbLoad(Load):
    """The server is the trial's own, and runs as the user `nobody`, with a socket and no port. A transaction is one of
    sysbench's. Afterwards a new server checks the tables (`CHECK TABLE … EXTENDED`) and counts their rows. Latencies
    are of sysbench's histogram, whose buckets are 2 % wide."""

    laid_out = frozenset({"tables", "rows", "log_file_size"})
    deed, parallel, usual_rate = "test", "clients", 2000.0
    reading = frozenset({"oltp_read_write", "oltp_read_only"})
    writing = frozenset({"oltp_read_write", "oltp_write_only"})

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
    tools = (TOOL, CLIENT, SYSBENCH)
    abilities = frozenset({Ability.CHOWN, Ability.SOCKETS})
    transaction_s = 0.01
    laid_out_bytes = 60 << 20
    continues = "sysbench measures by the clock"
    Load = MariadbLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return the promises. A page that is there in part can be recovered only from the doublewrite buffer."""
        consistent = settings["innodb_doublewrite"] == "on"
        durable = consistent and settings["innodb_flush_log_at_trx_commit"] == "1"
        return Contract.documented(
            "InnoDB System Variables",
            durable=(durable, "innodb_flush_log_at_trx_commit 1: the log is written and synced at each commit",
                     "the transactions of the last second may be lost"),
            consistent=(consistent, "innodb_doublewrite: a page of which only a part was written is recovered",
                        "without innodb_doublewrite, a page of which only a part was written cannot be recovered"),
        )  # fmt: skip

    def prepare(self, drive: DriveRequest) -> None:
        """Fill sysbench's tables. The server is shut down: its data is complete without the log."""
        servers.own_directory(drive.directory)
        options = {**drive.load.options(), "innodb_flush_log_at_trx_commit": "0"}
        with running(drive.directory, options) as mariadb:
            mariadb.say(_CREATED[0])
            mariadb.sysbench(drive, "prepare")

    def drive(self, drive: DriveRequest) -> Driven:
        load = drive.load
        with running(drive.directory, load.options()) as mariadb:
            driven = measured(mariadb, drive)
        try:
            with running(drive.directory, load.options()) as mariadb:
                problems = (
                    _problem(mariadb, f"sbtest{number + 1}", load.rows) for number in range(load.tables)
                )
                return driven.checked(next(filter(None, problems), None))
        except DamagedError as error:
            return driven.checked(str(error))

    def lay_out(self, directory: Path, settings: Settings) -> None:
        servers.own_directory(directory)
        with running(directory, {**_SMALL, **settings}) as mariadb:
            for statement in _CREATED:
                mariadb.say(statement)

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        with running(directory, {**_SMALL, **settings}) as mariadb:
            mariadb.say(f"USE {DATABASE}")

            def commit(number: int, contents: bytes) -> None:
                mariadb.say(  # only numbers and hexadecimal digits
                    f"BEGIN; INSERT INTO transactions VALUES ({number}, X'{contents.hex()}'); "  # noqa: S608
                    f"UPDATE counter SET last = {number}; COMMIT"
                )

            yield commit

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Start the server, which replays its log; check the tables, and read them."""
        try:
            with running(directory, _SMALL) as mariadb:
                mariadb.say(f"USE {DATABASE}")
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
        read = ((int(number), found) for number, found in rows)
        return RecoveredData.of_rows(read, lambda number: digest(contents(number)), last)


def _problem(mariadb: MariadbServer, table: str, rows: int) -> str | None:
    """Return what is wrong with a table of sysbench's, whose transactions leave as many rows as there were."""
    found = mariadb.problem(f"{DATABASE}.{table}")
    there = mariadb.say(f"SELECT COUNT(*) FROM {DATABASE}.{table}").strip()  # noqa: S608
    return found or (None if there == str(rows) else f"{table} has {there} rows, and not {rows}")


@dataclass(frozen=True, kw_only=True, slots=True)
class MariadbServer:
    """A server that accepts connections, and a client."""

    server: servers.RunningServer
    client: servers.Dialogue

    def say(self, statements: str) -> str:
        """Execute statements. Return what they print."""
        try:
            return self.client.say(f"{statements}; SELECT 'ready>';")
        except servers.NoAnswerError as error:
            raise failure(self.server, self.client.complaints()) from error

    def problem(self, table: str) -> str | None:
        """Return what MariaDB's own check finds wrong with a table; None: nothing."""
        told = [line.split("\t")[2:] for line in self.say(f"CHECK TABLE {table} EXTENDED").splitlines()]
        why = told[0][-1] if told else "no answer"
        return None if told == [["status", "OK"]] else f"CHECK TABLE {table}: {why}"

    def sysbench(self, drive: DriveRequest, *words: str) -> str:
        """Run a command of sysbench. Return what it prints."""
        load = drive.load
        common = (
            load.test, "--db-driver=mysql", f"--mysql-socket={_SOCKET}", "--mysql-user=root",
            f"--mysql-db={DATABASE}", f"--tables={load.tables}", f"--table-size={load.rows}",
            f"--rand-seed={1 + drive.seed % (1 << 30)}",
        )  # fmt: skip
        try:
            return run_program(SYSBENCH, *common, *words, cwd=drive.directory).stdout
        except FslabError as error:
            if self.server.child.wait(1) is not None or _FULL.search(f"{error}{self.server.said()}"):
                raise failure(self.server, str(error)) from error
            raise


@contextmanager
def running(directory: Path, options: Mapping[str, str]) -> Iterator[MariadbServer]:
    """Run a server on a directory, which can be empty, and shut it down. DamagedError for what its data can be to
    blame for, otherwise ToolFailedError."""
    with servers.reached(directory) as (path, inherit):
        # Versions from 2025 on reserve addresses for a pool that grows: 8 TiB, which guests and limits do not have.
        largest = {"loose_innodb_buffer_pool_size_max": options["innodb_buffer_pool_size"]}
        every = {**_OWN, **largest, "datadir": path, "tmpdir": path, **options}
        words = (f"--{name}={value}" for name, value in every.items())
        argv = servers.confined(TOOL, "--no-defaults", *words)
        with servers.started(argv, inherit=inherit, ended_by=signal.SIGKILL) as server:
            if not server.wait_until(lambda: _ACCEPTING in server.said()):
                raise failure(server)
            asked = ("--no-defaults", "--batch", "--skip-column-names", "--unbuffered", f"--socket={_SOCKET}")
            argv = servers.confined(CLIENT, *asked)
            with servers.dialogue(argv, _READY, inherit=(), cwd=directory) as dialogue:
                yield MariadbServer(server=server, client=dialogue)
            server.child.send(signal.SIGTERM)
            if server.child.wait(servers.LIMIT_S) != 0:
                raise failure(server)


def failure(server: servers.RunningServer, complaint: str = "") -> FslabError:
    """Return the error for a server that has refused something, or ended."""
    # A server that crashes closes its connections first, then writes a report, and only then ends.
    ended, said = server.child.wait(servers.END_S if _LOST.search(complaint) else 1), server.said()
    if ended is not None and proc.tells_nothing(ended):
        how = f"was ended by signal {-ended}" if ended < 0 else f"cannot be executed: {said.strip()}"
        return ToolFailedError(f"MariaDB {how}")
    if _FULL.search(said + complaint):
        return ToolFailedError("MariaDB: No space left on device")
    told = [*_TROUBLE.findall(said), *complaint.strip().splitlines()[-1:]]
    why = told[0] if told else "it does not answer" if ended is None else f"exit status {ended}"
    of_machine = _is_elsewhere(said) or (ended is None and (not told or _is_elsewhere(complaint)))
    return (ToolFailedError if of_machine else DamagedError)(f"MariaDB: {why}")


def _is_elsewhere(said: str) -> bool:
    return reports_shortage(said) or _ELSEWHERE.search(said) is not None


def measured(server: MariadbServer, drive: DriveRequest) -> Driven:
    """Run sysbench's test."""
    load = drive.load
    if drive.run_s is None:
        amount = (f"--events={load.transactions}", "--time=0")
    else:
        amount = ("--events=0", f"--time={drive.whole_s}")
    said = server.sysbench(drive, f"--threads={load.clients}", "--histogram=on", *amount, "run")
    ended_s, done = time.monotonic(), _DONE.search(said)
    if done is None or not int(done[2]):
        raise ToolFailedError("sysbench completed no transaction", hint="raise 'runtime' or 'transactions'")
    return Driven(
        count=int(done[2]), began_s=ended_s - float(done[1]), ended_s=ended_s,
        latencies_ns=array("q", sampled(_buckets(said))),
    )  # fmt: skip


def _buckets(said: str) -> Iterator[tuple[float, float, int]]:
    """Yield the buckets of sysbench's histogram, each at its value."""
    for value_ms, count in _BUCKET.findall(said):
        yield float(value_ms) * 1e6, float(value_ms) * 1e6, int(count)
