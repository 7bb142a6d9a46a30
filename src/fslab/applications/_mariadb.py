"""MariaDB's server, run as the user nobody on a socket in its directory, and sysbench, which measures it.

It has no tables of users and plug-ins: the socket is the only way to it, and data from elsewhere name no library that
it would load.
"""

from __future__ import annotations

import math
import re
import signal
import time
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fslab.applications import _servers as servers
from fslab.applications._measured_run import Driven, DriveRequest
from fslab.applications._servers import DamagedError
from fslab.applications._steps import run_program
from fslab.errors import FslabError, ToolFailedError
from fslab.system.tools import Tool, require

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
_LONG_S = 3600.0  # to recover, or to check; the trial has a time limit
_FULL = re.compile(r"No space left on device|Error number 28\b|errno: 28\b|is full")
_TROUBLE = re.compile(r"^[\d-]+ +[\d:]+ \d+ \[ERROR\] (.*)$", re.MULTILINE)
# What the machine or another version is to blame for, and not the data.
_ELSEWHERE = re.compile(r"[Cc]an(?:not|'t) allocate memory|unknown (?:option|variable)")
_DONE = re.compile(r"^ +total time: +([\d.]+)s\n +total number of events: +(\d+)$", re.MULTILINE)
_BUCKET = re.compile(r"^ +(\d+\.\d+) \|\**\s+(\d+)$", re.MULTILINE)
_SAMPLE = 20_000  # latencies that are made from a histogram


@dataclass(frozen=True, kw_only=True, slots=True)
class MariadbServer:
    """A server that accepts connections, and a client."""

    server: servers.RunningServer
    client: servers.Dialogue

    def say(self, statements: str) -> str:
        """Execute statements. Return what they print."""
        answer = self.client.say(f"{statements}; SELECT 'ready>';")
        if answer is None:
            raise failure(self.server, self.client.complaints())
        return answer

    def problem(self, table: str) -> str | None:
        """Return what MariaDB's own check finds wrong with a table; None: nothing."""
        told = [line.split("\t")[2:] for line in self.say(f"CHECK TABLE {table} EXTENDED").splitlines()]
        return (
            None
            if told == [["status", "OK"]]
            else f"CHECK TABLE {table}: {told[0][-1] if told else 'no answer'}"
        )

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
        words = (
            f"--{name}={value}"
            for name, value in {**_OWN, "datadir": path, "tmpdir": path, **options}.items()
        )
        with servers.started(_ending(TOOL, *words), inherit=inherit, ended_by=signal.SIGKILL) as server:
            if not server.wait_until(lambda: _ACCEPTING in server.said(), _LONG_S):
                raise failure(server)
            asked = ("--batch", "--skip-column-names", "--unbuffered", f"--socket={_SOCKET}")
            client = servers.dialogue(
                _ending(CLIENT, *asked), _READY, inherit=(), cwd=directory, limit_s=_LONG_S
            )
            with client as dialogue:
                yield MariadbServer(server=server, client=dialogue)
            server.child.send(signal.SIGTERM)
            if server.child.wait(_LONG_S) != 0:
                raise failure(server)


def _ending(tool: Tool, *words: str) -> list[str]:
    return servers.unprivileged(
        *servers.ending_with_parent(require(tool), "--no-defaults", *words, by=signal.SIGKILL)
    )


def failure(server: servers.RunningServer, complaint: str = "") -> FslabError:
    """Return the error for a server that has refused something, or ended."""
    ended, said = server.child.wait(1), server.said()
    if ended == -signal.SIGKILL:
        return ToolFailedError(f"MariaDB was ended by signal {-ended}")
    if _FULL.search(said + complaint):
        return ToolFailedError("MariaDB: No space left on device")
    told = [*_TROUBLE.findall(said), *complaint.strip().splitlines()[-1:]]
    why = told[0] if told else "it does not answer" if ended is None else f"exit status {ended}"
    kind = ToolFailedError if _ELSEWHERE.search(said) else DamagedError
    return kind(f"MariaDB: {why}")


def measured(server: MariadbServer, drive: DriveRequest) -> Driven:
    """Run sysbench's test."""
    load = drive.load
    if drive.run_s is None:
        amount = (f"--events={load.transactions}", "--time=0")
    else:
        amount = ("--events=0", f"--time={max(1, round(drive.run_s))}")
    said = server.sysbench(drive, f"--threads={load.clients}", "--histogram=on", *amount, "run")
    ended_s, done = time.monotonic(), _DONE.search(said)
    if done is None or not int(done[2]):
        raise ToolFailedError("sysbench completed no transaction", hint="raise 'runtime' or 'transactions'")
    return Driven(
        count=int(done[2]), began_s=ended_s - float(done[1]), ended_s=ended_s,
        latencies_ns=array("q", latencies_ns(said)),
    )  # fmt: skip


def latencies_ns(said: str) -> Iterator[int]:
    """Yield as many latencies of each bucket of sysbench's histogram as it has; of very many a sample."""
    buckets = [(float(value), int(count)) for value, count in _BUCKET.findall(said)]
    every = max(1, math.ceil(sum(count for _, count in buckets) / _SAMPLE))
    before = 0
    for value_ms, count in buckets:
        yield from (round(value_ms * 1e6) for _ in range(-before % every, count, every))
        before += count
