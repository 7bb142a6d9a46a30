"""PostgreSQL's server, run as the user nobody.

For crash tests in single-user mode (postgres(1), --single): one process, with pipes. It has the same transaction log,
commit and recovery as a normal server, and no processes in the background. For speed a normal server, which listens
only on a socket in its own directory.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fslab.applications import Settings
from fslab.applications import _servers as servers
from fslab.applications._servers import LIMIT_S, DamagedError
from fslab.errors import FslabError, ToolFailedError, ToolMissingError, ToolTimeoutError
from fslab.system import proc
from fslab.system.tool_messages import reports_shortage
from fslab.system.tools import Tool, require

_END_S = 5.0
_PID_FILE, _STATUS_LINE = "postmaster.pid", 7  # miscadmin.h, LOCK_FILE_LINE_PM_STATUS
TOOL = Tool(program="postgres", package="postgresql")
_PROMPT = b"backend> "
# Shared memory in the cluster's own directory: what /dev/shm has would outlive a server that is killed. No program and
# no library that the cluster's configuration names: recordings can come from other machines. (Functions in its tables
# still run as nobody.)
_OWN = {
    "log_min_messages": "error", "dynamic_shared_memory_type": "mmap",
    "shared_preload_libraries": "", "session_preload_libraries": "", "local_preload_libraries": "",
    "restore_command": "", "archive_cleanup_command": "", "recovery_end_command": "", "archive_mode": "off",
    "jit_provider": "llvmjit", "ssl": "off",
}  # fmt: skip
_TROUBLE = re.compile(r"\b(?:ERROR|FATAL|PANIC): +(.*)")
# What the machine or another version is to blame for, and not the data.
_ELSEWHERE = re.compile(r"shared memory|could not fork|incompatible with server|semaphore")


_SINGLE = {**_OWN, "shared_buffers": "1MB"}
# A client's working directory is the cluster: the path of a socket has at most 107 bytes.
_SOCKET = ("--host=/proc/self/cwd", "--port=5432", "--username=fslab")
_LISTENING = {
    **_OWN, "listen_addresses": "", "unix_socket_directories": ".", "unix_socket_permissions": "0700", "port": "5432",
}  # fmt: skip
_AT_ONCE = signal.SIGQUIT  # ends the server and its processes without a checkpoint
# The server's shared memory ends with it, also when it is killed.
_UNSHARE = Tool(program="unshare", package="util-linux")


def initialise(directory: Path, *, segment_mb: int = 1) -> None:
    """Create a cluster with checksums. ``segment_mb``: the size of a file of the transaction log."""
    servers.own_directory(directory)
    words = (
        "--auth=trust",
        "--encoding=UTF8",
        "--no-locale",
        "--data-checksums",
        f"--wal-segsize={segment_mb}",
        "--no-sync",
    )
    with servers.reached(directory) as (path, inherit):
        argv = _alone(_beside("initdb"), "-D", path, "--username=fslab", *words)
        proc.run(argv, timeout_s=LIMIT_S, cwd=Path("/"), inherit=inherit)


def bad_checksums(directory: Path) -> str | None:
    """Return what pg_checksums(1) finds wrong with the pages of a cluster whose server has ended; None: nothing."""
    with servers.reached(directory) as (path, inherit):
        argv = servers.unprivileged(_beside("pg_checksums"), "--check", "-D", path)
        done = proc.answer(argv, timeout_s=LIMIT_S, cwd=Path("/"), inherit=inherit)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().replace(f"{path}/", "").splitlines() or [f"exit {done.returncode}"])[0]


@contextmanager
def session(directory: Path, settings: Settings) -> Iterator[Callable[[str], str]]:
    """Run a server. Yield a function that sends one line, and returns what is printed until the next prompt.

    After the last line the server makes a checkpoint and ends. DamagedError for an error about its data; otherwise
    ToolFailedError, or ToolTimeoutError if it does not answer.
    """
    options = (word for name, value in {**settings, **_SINGLE}.items() for word in ("-c", f"{name}={value}"))
    with servers.reached(directory) as (path, inherit):
        argv = _alone(require(TOOL), "--single", "-D", path, *options, "postgres")
        with servers.dialogue(argv, _PROMPT, inherit=inherit) as postgres:

            def say(line: str) -> str:
                try:
                    told = postgres.say(line)
                except servers.NoAnswerError as error:
                    raise _failure(postgres.complaints(), postgres.child) from error
                if _TROUBLE.search(said := postgres.complaints()):
                    raise _failure(said, postgres.child)
                return told

            say("")
            yield say


@dataclass(frozen=True, kw_only=True, slots=True)
class Postmaster:
    """A server that accepts connections."""

    directory: Path
    server: servers.RunningServer

    def client(self, program: str, *words: str) -> str:
        """Run a program of PostgreSQL's that connects to the server. Return its output."""
        argv = [_beside(program), *_SOCKET, *words, "postgres"]
        try:
            return proc.run(argv, cwd=self.directory, timeout_s=LIMIT_S).stdout
        except FslabError as error:
            # The client can see the connection close before the server's end can be waited for.
            ended = self.server.child.wait(_END_S)
            said = self.server.said()
            if ended is not None and ended < 0:
                raise ToolFailedError(f"PostgreSQL was ended by signal {-ended}") from error
            if _TROUBLE.search(said) or ended is not None:
                raise self.failure() from error
            raise

    def is_ready(self) -> bool:
        with suppress(OSError):
            lines = (self.directory / _PID_FILE).read_text("utf-8", "replace").splitlines()
            return len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"
        return False

    def failure(self) -> FslabError:
        return _failure(self.server.said(), self.server.child)


@contextmanager
def running(directory: Path, settings: Settings) -> Iterator[Postmaster]:
    """Run a normal server, and shut it down with a checkpoint. ToolFailedError if it does not start, or fails."""
    memory = {"dynamic_shared_memory_type": "sysv"} if os.geteuid() == 0 else {}
    options = {**settings, **_LISTENING, **memory}
    words = (word for name, value in options.items() for word in ("-c", f"{name}={value}"))
    (directory / _PID_FILE).unlink(missing_ok=True)
    with servers.reached(directory) as (path, inherit):
        inner = servers.ending_with_parent(require(TOOL), "-D", path, *words, by=_AT_ONCE)
        with servers.started(_alone(*inner), inherit=inherit, ended_by=_AT_ONCE) as server:
            postmaster = Postmaster(directory=directory, server=server)
            if not server.wait_until(postmaster.is_ready):
                raise postmaster.failure()
            yield postmaster
            server.child.send(signal.SIGINT)
            if server.child.wait(LIMIT_S) != 0:
                raise postmaster.failure()


def _alone(*argv: str) -> list[str]:
    """Return a command line as ``servers.unprivileged`` does; of root, in an IPC namespace of its own, which frees the
    System V shared memory of a killed server."""
    own = [require(_UNSHARE), "--ipc", "--"] if os.geteuid() == 0 else []
    return [*own, *servers.unprivileged(*argv)]


def _beside(program: str) -> str:
    """Return a program of the server's version. Several versions can be installed."""
    path = Path(require(TOOL)).resolve().with_name(program)
    if not path.exists():
        raise ToolMissingError(f"'{program}' is not in {path.parent}", hint=TOOL.remedy)
    return str(path)


def _failure(said: str, child: proc.Child) -> FslabError:
    """Return the error for a server that refused a line, ended or does not answer."""
    trouble = _TROUBLE.search(said)
    if trouble is not None:
        elsewhere = reports_shortage(trouble[1]) or _ELSEWHERE.search(trouble[1])
        kind = ToolFailedError if elsewhere else DamagedError
        return kind(f"PostgreSQL: {trouble[1]}")
    ended = child.wait(1)
    if ended is None:
        return ToolTimeoutError("PostgreSQL does not answer")
    if ended < 0:
        kind = ToolFailedError if proc.tells_nothing(ended) else DamagedError
        return kind(f"PostgreSQL was ended by signal {-ended}")
    why = said.strip().rpartition("\n")[2] or "no message"
    kind = DamagedError if servers.DESCRIPTORS in why else ToolFailedError  # a file of the cluster is missing
    return kind(f"PostgreSQL exited {ended}: {why}")
