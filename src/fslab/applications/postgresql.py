"""PostgreSQL, whose commits are acknowledged when they return: pgbench(1), its own benchmark, measures it.

For crash tests a transaction inserts one row and updates one counter. Sources of its promises:
postgresql.org/docs/15/runtime-config-wal.html.
"""

from __future__ import annotations

import os
import re
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

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
    setting,
)
from fslab.applications import _postgresql_server as server
from fslab.applications._servers import DamagedError
from fslab.errors import ToolFailedError
from fslab.filesystem_abilities import Ability
from fslab.storage.crash_promises import Promises
from fslab.units import Size, parse_size

_LOG, _ACCOUNTS = "pgbench", 100_000
_SEGMENT_MB = 16  # initdb's default
_MORE_CONNECTIONS = 20
_SCALE_BYTES, _TRANSACTION_BYTES, _PER_SCALE_S = 18 << 20, 300, 0.4
_CLIENTS_CONNECTED_PER_S = 200  # by a slow machine
_READS_LOGGED = "0.1"  # the log of all reads would slow pgbench down
# What PostgreSQL does by the clock, which goes on while others have their turns: the defaults of version 15.
_BY_THE_CLOCK = {
    "wal_writer_delay": (200, "ms"), "bgwriter_delay": (200, "ms"), "checkpoint_timeout": (300, "s"),
    "autovacuum_naptime": (60, "s"), "deadlock_timeout": (1000, "ms"),
}  # fmt: skip
_COUNT = re.compile(r"^number of transactions actually processed: (\d+)", re.MULTILINE)
_RATE = re.compile(r"^tps = ([0-9.]+) \(without initial connection time\)", re.MULTILINE)
_SUMS = (
    "SELECT (SELECT count(*) FROM pgbench_accounts), (SELECT count(*) FROM pgbench_history), "
    "(SELECT sum(abalance) FROM pgbench_accounts), (SELECT coalesce(sum(delta), 0) FROM pgbench_history), "
    "(SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches)"
)
CHECKPOINT_EVERY = 4
_CREATED = (
    "CREATE TABLE transactions (number integer PRIMARY KEY, contents bytea)",
    "CREATE TABLE counter (last integer)",
    "INSERT INTO counter VALUES (0)",
)
_READ = (
    "SELECT number, md5(contents) FROM transactions ORDER BY number",
    "SELECT last FROM counter",
    "SET enable_seqscan = off",
    "SELECT count(number) AS indexed FROM transactions WHERE number > 0",
)
_FIGURE = re.compile(r'^\t +\d+: (number|md5|last|indexed) = "(\w+)"\t', re.MULTILINE)


class PgbenchLoad(Load):
    """The server is the trial's own, and runs as the user `nobody`, with a socket in the trial's directory. Its
    shutdown, with the checkpoint, is not measured. Afterwards the sums of pgbench's tables and the checksums of all
    pages must be right."""

    laid_out = frozenset({"scale", "shared_buffers", "max_wal_size"})
    deed, parallel, usual_rate, rates = "test", "clients", 1000.0, {"select-only": 20_000.0}
    reading = frozenset({"tpcb-like", "simple-update", "select-only"})
    writing = frozenset({"tpcb-like", "simple-update"})

    test: Literal["tpcb-like", "simple-update", "select-only"] = Field(
        "tpcb-like",
        description="the transactions, by pgbench's names: three updates, a read and an insert; one less "
        "update; or one read",
    )
    scale: int = Field(
        10, ge=1, le=100_000, description="size of the tables in units of 16 MB (100,000 accounts)"
    )
    clients: int = Field(4, ge=1, le=1000, description="connections that run transactions at once")
    shared_buffers: Size = Field("128m", description="the server's own cache")
    max_wal_size: Size = Field(
        "1g", description="a checkpoint begins before the transaction log is larger; also space that it takes"
    )
    synchronous_commit: Literal["on", "off"] = setting(
        "on", "on: a commit waits until its log is on the disk; off: the last commits may be lost"
    )
    fsync: Literal["on", "off"] = setting(
        "on", "off: nothing is synced, and a power cut can corrupt the data"
    )
    full_page_writes: Literal["on", "off"] = setting(
        "on", "off: the log has no whole pages after a checkpoint, and a page torn by a power cut stays torn"
    )

    @property
    def prepare_s(self) -> float:
        return 3 + self.scale * _PER_SCALE_S

    @property
    def space_bytes(self) -> int:
        grown = self.most * _TRANSACTION_BYTES if self.writes else 0
        wal = parse_size(self.max_wal_size) * 5 // 4 + 4 * (_SEGMENT_MB << 20)
        return self.scale * _SCALE_BYTES + wal + grown

    def scaled(self, factor: float) -> scaling.Changes:
        return {**super().scaled(factor), "scale": scaling.count(self.scale, factor)}

    def options(self) -> dict[str, str]:
        """Return the server's settings that do not decide what a power cut takes."""
        sizes = {"shared_buffers": self.shared_buffers, "max_wal_size": self.max_wal_size}
        return {name: f"{max(1, parse_size(value) >> 10)}kB" for name, value in sizes.items()}

    @model_validator(mode="after")
    def _takes_segments(self) -> Self:
        if parse_size(self.max_wal_size) < 2 * _SEGMENT_MB << 20:
            raise ValueError(f"'max_wal_size' must be at least {2 * _SEGMENT_MB}m: two files of the log")
        return self


class Postgresql(DurableApplication):
    """The defaults of the settings are those of PostgreSQL. Its data has checksums."""

    summary = "PostgreSQL: pgbench, by synchronous_commit and others"
    tools = (server.TOOL,)
    abilities = frozenset({Ability.CHOWN, Ability.SOCKETS})
    transaction_s = 0.01
    laid_out_bytes = 40 << 20
    Load = PgbenchLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return the promises: without synchronous_commit, commits may be lost, but the data stays consistent."""
        given = {name for name, value in settings.items() if value == "on"}
        consistent = {"fsync", "full_page_writes"} <= given
        durable = consistent and "synchronous_commit" in given
        return Contract.documented(
            "runtime-config-wal",
            durable=(durable, "with synchronous_commit, a commit waits until its log is on the disk",
                     "the latest commits may be lost after a crash"),
            consistent=(consistent, "fsync and full_page_writes: the cluster can recover to a consistent state",
                        "without fsync or full_page_writes, a power failure can corrupt the data"),
        )  # fmt: skip

    def prepare(self, drive: DriveRequest) -> None:
        server.initialise(drive.directory, segment_mb=_SEGMENT_MB)
        with server.running(drive.directory, {**drive.load.options(), "fsync": "off"}) as postgres:
            scale = f"--scale={drive.load.scale}"
            postgres.client("pgbench", "--initialize", "--quiet", scale)

    def drive(self, drive: DriveRequest) -> Driven:
        """Run pgbench, compare the sums of its tables, shut the server down, and check the pages of all files."""
        load = drive.load
        options = {
            **load.options(),
            **load.settings(),
            "max_connections": str(load.clients + _MORE_CONNECTIONS),
        }
        if drive.turns > 1:
            options |= {
                name: f"{default * drive.turns}{unit}" for name, (default, unit) in _BY_THE_CLOCK.items()
            }
        with server.running(drive.directory, options) as postgres:
            said = postgres.client("pgbench", *_words(drive))
            ended_s = time.monotonic()
            count, rate = (float((found.findall(said) or ["0"])[-1]) for found in (_COUNT, _RATE))
            if not count or not rate:
                raise ToolFailedError(
                    "pgbench completed no transaction", hint="raise 'runtime', or give 'transactions'"
                )
            sums = postgres.client("psql", "--no-psqlrc", "-At", "-c", _SUMS).strip().split("|")
        latencies, ended = _logged(drive.scratch)
        return Driven(
            count=int(count), began_s=ended_s - count / rate, ended_s=ended_s, latencies_ns=latencies, ended_ns=ended,
            problem=difference(load, int(count), sums) or server.bad_checksums(drive.directory),
        )  # fmt: skip

    def lay_out(self, directory: Path, settings: Settings) -> None:
        server.initialise(directory)
        with server.session(directory, settings) as say:
            for statement in _CREATED:
                say(statement)

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Start one server for all transactions. Before every fourth one it makes a checkpoint."""
        with server.session(directory, settings) as say:

            def commit(number: int, contents: bytes) -> None:
                if number % CHECKPOINT_EVERY == 0:
                    say("CHECKPOINT")
                # Several statements in one line are one transaction.
                say(  # only numbers and hexadecimal digits
                    f"INSERT INTO transactions VALUES ({number}, decode('{contents.hex()}', 'hex')); "  # noqa: S608
                    f"UPDATE counter SET last = {number}"
                )

            yield commit

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Start the server, which replays its log; read table, counter and index; check the pages of all files."""
        try:
            with server.session(directory, {"fsync": "off"}) as say:
                told = "".join(say(statement) for statement in _READ)
        except DamagedError as error:
            return RecoveredData(problem=str(error))
        figures: dict[str, list[str]] = {"number": [], "md5": [], "last": [], "indexed": []}
        for name, value in _FIGURE.findall(told):
            figures[name].append(value)
        numbers = [int(number) for number in figures["number"]]
        if [str(len(numbers))] != figures["indexed"]:
            indexed = " ".join(figures["indexed"])
            return RecoveredData(problem=f"the index has {indexed} rows, the table {len(numbers)}")
        rows = zip(numbers, figures["md5"], strict=True)
        found = RecoveredData.of_rows(
            rows, lambda number: digest(contents(number)), " ".join(figures["last"])
        )
        problem = found.problem or server.bad_checksums(directory)
        return found if problem is None else RecoveredData(problem=problem)


def _words(drive: DriveRequest) -> list[str]:
    load = drive.load
    if drive.whole_s is None:
        amount = f"--transactions={ceil(load.transactions / load.clients)}"
    else:
        # pgbench's time begins before its clients connect, and its rate after that.
        amount = f"--time={drive.whole_s + ceil(load.clients / _CLIENTS_CONNECTED_PER_S)}"
    jobs = min(load.clients, os.cpu_count() or 1)
    return [
        f"--builtin={load.test}", amount, f"--client={load.clients}", f"--jobs={jobs}",
        f"--random-seed={drive.seed % (1 << 31)}", "--log", f"--log-prefix={drive.scratch / _LOG}",
        f"--sampling-rate={'1' if load.writes else _READS_LOGGED}",
    ]  # fmt: skip


def _logged(scratch: Path) -> tuple[array[int], array[int]]:
    """Return the latencies in pgbench's logs, and when each transaction ended (CLOCK_MONOTONIC), in ns. Remove the
    logs: client, transaction, microseconds, script, and the end in seconds and microseconds of the day's clock."""
    latencies, ended = array("q"), array("q")
    behind_ns = time.time_ns() - time.monotonic_ns()
    for path in scratch.glob(f"{_LOG}.*"):
        with path.open() as lines:
            for line in lines:
                _, _, took_us, _, seconds, microseconds, *_ = line.split()
                latencies.append(int(took_us) * 1000)
                ended.append(int(seconds) * 10**9 + int(microseconds) * 1000 - behind_ns)
        path.unlink()
    return latencies, ended


def difference(load: PgbenchLoad, count: int, sums: Sequence[str]) -> str | None:
    """Return what is wrong with the tables after ``count`` transactions."""
    accounts, history, *balances = map(int, sums)
    if accounts != load.scale * _ACCOUNTS:
        return f"{accounts} of {load.scale * _ACCOUNTS} accounts are there"
    if history != (count if load.writes else 0):
        return f"{history} rows of {count} transactions are there"
    compared = balances if load.test == "tpcb-like" else balances[:2]
    return None if len(set(compared)) == 1 else f"the sums of the tables differ: {compared}"
