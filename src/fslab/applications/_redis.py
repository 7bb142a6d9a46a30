"""Redis: its server, run as the user nobody on a socket in its directory, and clients that set keys.

Its configuration is in the command line alone: redis-server reads no file that is not named there. The protocol:
redis.io/docs/latest/develop/reference/protocol-spec.
"""

from __future__ import annotations

import re
import select
import signal
import socket
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fslab.applications import _servers as servers
from fslab.applications._measured_run import Driven, DriveRequest
from fslab.errors import FslabError, ToolFailedError
from fslab.system import proc
from fslab.system.tools import Tool, require

TOOL = Tool(program="redis-server", package="redis-server")
CHECK = Tool(program="redis-check-aof", package="redis-tools")
SOCKET = "fslab.sock"
LOGS = "appendonlydir"
MANIFEST = f"{LOGS}/appendonly.aof.manifest"
_OWN = {
    "port": "0", "unixsocket": SOCKET, "unixsocketperm": "700", "appendonly": "yes", "save": "", "daemonize": "no",
    "set-proc-title": "no",  # a new title would replace the environment, by which fslab finds what it must end
}  # fmt: skip
_PIPELINED = 100
_OK = b"+OK\r\n"
_WARNING = re.compile(r"^\d+:\w .{24} # (.*)$", re.MULTILINE)
_ABOUT_DATA = re.compile(r"AOF|RDB|manifest|file format|end of file")
_FULL = "No space left on device"
_SHORT = re.compile(f"{_FULL}|Short write while writing to the AOF file")


class RedisClient:
    """A connection: sends commands and reads replies."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self.socket = server.connected()
        self._replies = self.socket.makefile("rb")

    def call(self, *commands: Sequence[bytes]) -> list[Any]:
        """Send commands at once, and return their replies. ToolFailedError for an error, or if the server ends."""
        try:
            self.socket.sendall(b"".join(command(*words) for words in commands))
            return [self._reply() for _ in commands]
        except (OSError, ValueError) as error:
            raise self._server.failure() from error

    def close(self) -> None:
        self._replies.close()
        self.socket.close()

    def _reply(self) -> Any:
        line = self._replies.readline()
        kind, rest = line[:1], line[1:].rstrip()
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self._replies.read(size + 2)[:-2]
        if kind == b"*":
            return [self._reply() for _ in range(int(rest))]
        if kind == b"-":
            raise ToolFailedError(f"Redis: {rest.decode('utf-8', 'replace')}")
        return int(rest) if kind == b":" else rest.decode() if kind == b"+" else int("")


class RedisServer:
    """A server that runs. ``path``: to its directory, short enough for that of a socket."""

    def __init__(self, path: str, server: servers.RunningServer) -> None:
        self._path, self._server = path, server

    def connected(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        try:
            made.connect(f"{self._path}/{SOCKET}")
        except OSError:
            made.close()
            raise
        return made

    @contextmanager
    def session(self) -> Iterator[RedisClient]:
        try:
            connection = RedisClient(self)
        except OSError as error:
            raise self.failure() from error
        try:
            yield connection
        finally:
            connection.close()

    def is_ready(self) -> bool:
        """Return whether it has loaded its data."""
        try:
            with self.connected() as client:
                client.sendall(command(b"PING"))
                return client.recv(64) == b"+PONG\r\n"
        except OSError:
            return False

    def failure(self, reply: bytes = b"") -> FslabError:
        """Return the error for a server that has refused a command, or ended."""
        if reply:
            return ToolFailedError(f"Redis: {reply.decode('utf-8', 'replace').strip()}")
        ended, said = self._server.child.wait(1), self._server.said()
        why = _FULL if _SHORT.search(said) else "; ".join(_WARNING.findall(said)[-2:])
        if ended is None or ended < 0:
            how = "does not answer" if ended is None else f"was ended by signal {-ended}"
            return ToolFailedError(f"Redis {how}")
        kind = servers.DamagedError if _ABOUT_DATA.search(why) else ToolFailedError
        return kind(f"Redis exited {ended}: {why or said.strip().rpartition(chr(10))[2]}")


@contextmanager
def running(directory: Path, options: dict[str, str]) -> Iterator[RedisServer]:
    """Run a server, and shut it down, which syncs its log. ToolFailedError if it does not start, or fails."""
    with servers.reached(directory) as (path, inherit):
        words = (
            word for name, value in {**_OWN, **options, "dir": path}.items() for word in (f"--{name}", value)
        )
        with servers.started(
            servers.confined(TOOL, *words), inherit=inherit, ended_by=signal.SIGKILL
        ) as server:
            redis = RedisServer(path, server)
            if not server.wait_until(redis.is_ready):
                raise redis.failure()
            yield redis
            server.child.send(signal.SIGTERM)
            if server.child.wait(servers.LIMIT_S) != 0:
                raise redis.failure()
    if not (directory / MANIFEST).is_file():
        raise ToolFailedError("Redis made no append-only directory", hint="Redis 7.0 or later is needed")


def bad_log(directory: Path) -> str | None:
    """Return what redis-check-aof(1) finds wrong with the log of a server that has ended; None: nothing."""
    with servers.reached(directory) as (path, inherit):
        argv = servers.unprivileged(require(CHECK), f"{path}/{MANIFEST}")
        done = proc.answer(argv, timeout_s=servers.LIMIT_S, cwd=Path("/"), inherit=inherit)
    said = (done.stdout + done.stderr).strip().splitlines()
    return None if done.returncode == 0 else f"redis-check-aof: {(said or ['no message'])[-1]}"


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


class Keys:
    """Which keys each client sets, one after the other, and to what: its number, counted per client, and contents.

    Each client has keys of its own: the last value of a key is then the last one that was acknowledged.
    """

    def __init__(self, drive: DriveRequest) -> None:
        self.each, self.clients = drive.load.keys // drive.load.clients, drive.load.clients
        self._contents = drive.contents

    def key(self, client: int, number: int) -> bytes:
        return b"key:%d:%d" % (client, number % self.each)

    def value(self, client: int, number: int) -> bytes:
        return b"%d " % number + self._contents(number + client)

    def set(self, client: int, number: int) -> tuple[bytes, bytes, bytes]:
        return b"SET", self.key(client, number), self.value(client, number)

    def load(self, session: RedisClient) -> None:
        """Set each key once."""
        for client in range(self.clients):
            for first in range(0, self.each, _PIPELINED):
                times = range(first, min(first + _PIPELINED, self.each))
                session.call(*(self.set(client, number) for number in times))

    def difference(self, session: RedisClient, times: Sequence[int]) -> str | None:
        """Return which key has another value than the last of ``times`` per client; None: none has."""
        (count,) = session.call([b"DBSIZE"])
        if count != self.each * self.clients:
            return f"{count} of {self.each * self.clients} keys are there"
        for client, end in enumerate(times):
            for first in range(end - self.each, end, _PIPELINED):
                last = range(first, min(first + _PIPELINED, end))
                (found,) = session.call([b"MGET", *(self.key(client, number) for number in last)])
                for number, value in zip(last, found, strict=True):
                    if value != self.value(client, number):
                        return (
                            f"{self.key(client, number).decode()} has another value than it was set to last"
                        )
        return None


def set_keys(redis: RedisServer, drive: DriveRequest, keys: Keys) -> tuple[Driven, list[int]]:
    """Let each client set keys, each after the reply to the one before, until the time or the number is reached.

    Return also how often each client has.
    """
    times = [keys.each] * keys.clients  # how often before: ``Keys.load``
    latencies = array("q")
    with ExitStack() as undo:
        poll = undo.enter_context(select.epoll())
        clients = [undo.enter_context(redis.connected()) for _ in times]
        at = {client.fileno(): number for number, client in enumerate(clients)}
        begun = [0] * len(clients)
        most = drive.load.transactions or float("inf")
        now = began = time.monotonic_ns()
        until = began + drive.run_s * 1e9 if drive.run_s is not None else float("inf")
        count = waiting = 0

        def send(number: int) -> None:
            nonlocal count, waiting
            if count < most and now < until:
                count, waiting = count + 1, waiting + 1
                begun[number] = time.monotonic_ns()
                clients[number].sendall(command(*keys.set(number, times[number])))

        try:
            for number, client in enumerate(clients):
                poll.register(client, select.EPOLLIN)
                send(number)
            while waiting:
                for descriptor, _ in poll.poll():
                    number = at[descriptor]
                    reply = clients[number].recv(4096)
                    now = time.monotonic_ns()
                    if reply != _OK:
                        raise redis.failure(reply)
                    latencies.append(now - begun[number])
                    times[number] += 1
                    waiting -= 1
                    send(number)
        except OSError as error:
            raise redis.failure() from error
    driven = Driven(count=count, began_s=began / 1e9, ended_s=now / 1e9, latencies_ns=latencies)
    return driven, times
