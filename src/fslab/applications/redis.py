"""Redis with an append-only file: the server replies to a SET when it is in the file, which is synced before, or later.

Sources of its promises: redis.io/docs/latest/operate/oss_and_stack/management/persistence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from fslab import scaling
from fslab.applications import (
    Contract,
    Driven,
    DriveRequest,
    DurableApplication,
    Records,
    RecoveredData,
    Settings,
    setting,
)
from fslab.applications import _redis as server
from fslab.applications import _servers as servers
from fslab.applications import _untrusted_data as untrusted
from fslab.applications._servers import DamagedError
from fslab.filesystem_abilities import Ability
from fslab.storage.crash_promises import Promises

_AROUND_BYTES = 80  # of a command in the log
_LOADED_PER_S = 30_000.0
_REWRITTEN_BYTES = 64 << 20  # auto-aof-rewrite-min-size
_UNCHANGED = {"auto-aof-rewrite-percentage": "0"}
# Only commands in the log, which can be read without the server.
_PLAIN = {**_UNCHANGED, "aof-use-rdb-preamble": "no"}


class RedisLoad(Records):
    """Clients set keys, each after the reply to the one before. The server is the trial's own, and runs as the user
    `nobody`, with a socket and no port. It has the default settings, but writes only the append-only file. The clients
    need about as much CPU. Afterwards a new server loads the file: each key must have the last acknowledged value, and
    `redis-check-aof` must find nothing."""

    laid_out = frozenset({"keys", "clients", "size"})
    parallel, usual_rate = "clients", 40_000.0

    clients: int = Field(50, ge=1, le=1000, description="connections that set keys at once")
    keys: int = Field(
        10_000,
        ge=1,
        le=100_000_000,
        description="keys in memory, which are set in turn; at least one per client",
    )
    appendfsync: Literal["everysec", "always", "no"] = setting(
        "everysec",
        "when the append-only file is synced: before the replies, once per second, or when the kernel writes it back",
    )

    @property
    def prepare_s(self) -> float:
        return 1 + self.keys / _LOADED_PER_S

    @property
    def space_bytes(self) -> int:
        """The log is rewritten when it has doubled, and exists twice then."""
        each = self.size_bytes + _AROUND_BYTES
        kept = self.keys * each
        return min(self.most * each + kept, 4 * (kept + _REWRITTEN_BYTES))

    def scaled(self, factor: float) -> scaling.Changes:
        return {**super().scaled(factor), "keys": scaling.count(self.keys, factor, least=self.clients)}

    @model_validator(mode="after")
    def _keys_for_all(self) -> Self:
        if self.keys < self.clients:
            raise ValueError(f"'keys' must be at least {self.clients}: one per client")
        return self


class Redis(DurableApplication):
    """The default of ``appendfsync`` is that of Redis. Without an append-only file it promises nothing."""

    summary = "Redis: sets of keys, by appendfsync"
    tools = (server.TOOL, server.CHECK)
    abilities = frozenset({Ability.CHOWN, Ability.SOCKETS})
    transaction_s = 0.005
    laid_out_bytes = 1 << 20
    continues = "Redis syncs its log by the clock"
    Load = RedisLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return the promises: what was synced before the reply is kept. The file is only appended to: its end can be
        missing, but nothing before the end, unless the file system exposes blocks that were not yet written."""
        durable = settings["appendfsync"] == "always"
        lost = (
            "everysec may lose one second of data; with no, the data is in the hands of the operating system"
        )
        contract = Contract.documented(
            "redis.io, Redis persistence",
            durable=(durable, "appendfsync always: a single fsync before sending the replies", lost),
            consistent=(
                True,
                "the append-only file has no corruption problems if there is a power outage",
                "",
            ),
        )
        return contract if promises.unexposed.given else replace(contract, consistent=promises.unexposed)

    def prepare(self, drive: DriveRequest) -> None:
        servers.own_directory(drive.directory)
        with (
            server.running(drive.directory, {"appendfsync": "no"}) as redis,
            redis.session() as session,
        ):
            server.Keys(drive).load(session)

    def drive(self, drive: DriveRequest) -> Driven:
        keys = server.Keys(drive)
        with server.running(drive.directory, drive.load.settings()) as redis:
            driven, times = server.set_keys(redis, drive, keys)
        try:
            with (
                server.running(drive.directory, {**_UNCHANGED, "appendfsync": "no"}) as redis,
                redis.session() as session,
            ):
                problem = keys.difference(session, times)
        except DamagedError as error:
            problem = str(error)
        return driven.checked(problem or server.bad_log(drive.directory))

    def lay_out(self, directory: Path, settings: Settings) -> None:  # noqa: ARG002
        servers.own_directory(directory)
        with server.running(directory, _PLAIN):
            pass

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        with server.running(directory, {**_PLAIN, **settings}) as redis, redis.session() as session:

            def commit(number: int, contents: bytes) -> None:
                session.call([b"SET", b"%d" % number, contents])

            yield commit

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Start the server, which loads its log and drops the last command if that is cut; read all keys."""
        try:
            if (problem := untrusted.redis_problem(directory)) is not None:
                return RecoveredData(problem=problem)
            with (
                server.running(directory, {**_PLAIN, "appendfsync": "no"}) as redis,
                redis.session() as session,
            ):
                (names,) = session.call([b"KEYS", b"*"])
                values = session.call(*([b"GET", name] for name in names))
        except (DamagedError, OSError) as error:
            return RecoveredData(problem=f"cannot load the append-only file: {error}")
        rows = ((int(name), value) for name, value in zip(names, values, strict=True))
        found = RecoveredData.of_rows(rows, contents)
        problem = found.problem or server.bad_log(directory)
        return found if problem is None else RecoveredData(problem=problem)
