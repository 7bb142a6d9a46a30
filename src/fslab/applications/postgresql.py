"""PostgreSQL, whose commits are acknowledged when they return: pgbench measures it.

For crash tests a transaction inserts one row and updates one counter. Sources of its promises:
postgresql.org/docs/15/runtime-config-wal.html.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fslab.applications import Contract, Driven, DriveRequest, DurableApplication, RecoveredData, Settings
from fslab.applications import _pgbench as pgbench
from fslab.applications import _postgresql_server as server
from fslab.applications._servers import DamagedError
from fslab.storage.crash_promises import Promise, Promises

CHECKPOINT_EVERY = 4
_DOCS = "runtime-config-wal"
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


class Postgresql(DurableApplication):
    """The defaults of the settings are those of PostgreSQL. Its data has checksums."""

    summary = "PostgreSQL: pgbench, by synchronous_commit and others"
    tools = (server.TOOL,)
    transaction_s = 0.01
    laid_out_bytes = 40 << 20
    Load = pgbench.PgbenchLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return the promises: without synchronous_commit, commits may be lost, but the data stays consistent."""
        given = {name for name, value in settings.items() if value == "on"}
        consistent = {"fsync", "full_page_writes"} <= given
        durable = consistent and "synchronous_commit" in given
        return Contract(
            durable=Promise(given=durable, source=f"{_DOCS}: {_DURABLE if durable else _NOT_DURABLE}"),
            consistent=Promise(given=consistent, source=f"{_DOCS}: {_SAFE if consistent else _UNSAFE}"),
        )

    def prepare(self, drive: DriveRequest) -> None:
        pgbench.prepare(drive)

    def drive(self, drive: DriveRequest) -> Driven:
        return pgbench.run(drive)

    def lay_out(self, directory: Path, settings: Settings) -> None:
        """Create a cluster with two tables."""
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
        if numbers != list(range(1, len(numbers) + 1)) or figures["last"] != [str(len(numbers))]:
            last, rows = " ".join(figures["last"]), " ".join(figures["number"])
            return RecoveredData(problem=f"a partial transaction: the counter is {last}, the rows are {rows}")
        for number, digest in zip(numbers, figures["md5"], strict=True):
            if digest != hashlib.md5(contents(number), usedforsecurity=False).hexdigest():
                return RecoveredData(problem=f"transaction {number} has other contents than were committed")
        problem = server.bad_checksums(directory)
        return RecoveredData(
            transactions=frozenset(numbers) if problem is None else frozenset(), problem=problem
        )


_DURABLE = "with synchronous_commit, a commit waits until its log is on the disk"
_NOT_DURABLE = "the latest commits may be lost after a crash"
_SAFE = "fsync and full_page_writes: the cluster can recover to a consistent state"
_UNSAFE = "without fsync or full_page_writes, a power failure can corrupt the data"
