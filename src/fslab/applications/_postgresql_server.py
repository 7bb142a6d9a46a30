"""PostgreSQL's server in single-user mode (postgres(1), --single), run as the user nobody: one process, with pipes.

It has the same transaction log, commit and recovery as a normal server, and no processes in the background.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fslab.applications import Settings
from fslab.errors import FslabError, ToolFailedError, ToolMissingError, ToolTimeoutError
from fslab.system import proc, users
from fslab.system.tools import Tool, require

LIMIT_S = 60.0
TOOL = Tool(program="postgres", package="postgresql")
_PROMPT = b"backend> "
# Shared memory in the cluster's own directory: what /dev/shm has would outlive a server that is killed. No program and
# no library that the cluster's own files name: recordings can come from other machines.
_OWN = {
    "shared_buffers": "1MB", "log_min_messages": "error", "dynamic_shared_memory_type": "mmap",
    "shared_preload_libraries": "", "session_preload_libraries": "", "local_preload_libraries": "",
    "restore_command": "", "archive_cleanup_command": "", "recovery_end_command": "", "archive_mode": "off",
}  # fmt: skip
_TROUBLE = re.compile(r"\b(?:ERROR|FATAL|PANIC): +(.*)")
# What the machine or another version is to blame for, and not the data.
_ELSEWHERE = re.compile(r"shared memory|out of memory|could not fork|incompatible with server|semaphore")


class DamagedError(ToolFailedError):
    """The server reports an error about its data, or crashes on it."""


def initialise(directory: Path) -> None:
    """Create a cluster with checksums."""
    if os.geteuid() == 0:
        os.chown(directory, users.NOBODY, users.NOBODY)
    words = (
        "--auth=trust",
        "--encoding=UTF8",
        "--no-locale",
        "--data-checksums",
        "--wal-segsize=1",
        "--no-sync",
    )
    argv = _unprivileged(_beside("initdb"), "-D", str(directory), "--username=fslab", *words)
    proc.run(argv, timeout_s=LIMIT_S, cwd=Path("/"))


def bad_checksums(directory: Path) -> str | None:
    """Return what pg_checksums(1) finds wrong with the pages of a cluster whose server has ended; None: nothing."""
    argv = _unprivileged(_beside("pg_checksums"), "--check", "-D", str(directory))
    done = proc.run(argv, check=False, timeout_s=LIMIT_S, cwd=Path("/"))
    return (
        None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[0]
    )


@contextmanager
def session(directory: Path, settings: Settings) -> Iterator[Callable[[str], str]]:
    """Run a server. Yield a function that sends one line, and returns what is printed until the next prompt.

    After the last line the server makes a checkpoint and ends. DamagedError for an error about its data; otherwise
    ToolFailedError, or ToolTimeoutError if it does not answer.
    """
    options = (word for name, value in {**settings, **_OWN}.items() for word in ("-c", f"{name}={value}"))
    argv = _unprivileged(require(TOOL), "--single", "-D", str(directory), *options, "postgres")
    with ExitStack() as undo:
        errors = undo.enter_context(os.fdopen(os.memfd_create("fslab-postgres", os.MFD_CLOEXEC), "rb"))
        theirs, ours = (undo.enter_context(os.fdopen(end, mode, 0)) for end, mode in _pipe())
        answers, output = (undo.enter_context(os.fdopen(end, mode, 0)) for end, mode in _pipe())
        child = proc.start(
            argv, stdin=theirs.fileno(), output=output.fileno(), errors=errors.fileno(), cwd=Path("/")
        )
        undo.callback(child.end)
        undo.callback(child.wait, LIMIT_S)  # a killed server leaves shared memory of the machine behind
        undo.callback(ours.close)
        theirs.close()
        output.close()

        def say(line: str) -> str:
            with suppress(BrokenPipeError):  # the server has ended: there is no answer, and it told why
                ours.write(line.encode())
            told = _until_prompt(answers.fileno())
            said = os.pread(errors.fileno(), 1 << 20, 0).decode("utf-8", "replace")
            if told is None or _TROUBLE.search(said):
                raise _failure(said, child, directory)
            return told

        say("")
        yield lambda line: say(f"{line}\n")


def _beside(program: str) -> str:
    """Return a program of the server's version. Several versions can be installed."""
    path = Path(require(TOOL)).resolve().with_name(program)
    if not path.exists():
        raise ToolMissingError(f"'{program}' is not in {path.parent}", hint=TOOL.remedy)
    return str(path)


def _unprivileged(*argv: str) -> list[str]:
    """Return a command that runs as the user nobody if fslab runs as root: PostgreSQL refuses to run as root."""
    return list(argv) if os.geteuid() != 0 else users.unprivileged(argv)


def _failure(said: str, child: proc.Child, directory: Path) -> FslabError:
    """Return the error for a server that refused a line, ended or does not answer."""
    trouble = _TROUBLE.search(said)
    if trouble is not None:
        kind = ToolFailedError if _ELSEWHERE.search(trouble[1]) else DamagedError
        return kind(f"PostgreSQL: {trouble[1]}")
    ended = child.wait(1)
    if ended is None:
        return ToolTimeoutError(f"PostgreSQL does not answer after {LIMIT_S:g} s")
    if ended < 0:
        return DamagedError(f"PostgreSQL was ended by signal {-ended}")
    why = said.strip().rpartition("\n")[2] or "no message"
    kind = DamagedError if str(directory) in why else ToolFailedError  # a file of the cluster is missing
    return kind(f"PostgreSQL exited {ended}: {why}")


def _pipe() -> tuple[tuple[int, str], tuple[int, str]]:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    return (reading, "rb"), (writing, "wb")


def _until_prompt(descriptor: int) -> str | None:
    """Return what the server prints until its next prompt; None if it ends before, or takes too long."""
    deadline, told = time.monotonic() + LIMIT_S, b""
    while not told.endswith(_PROMPT):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(descriptor, 1 << 16) if ready else b""
        if not part:
            return None
        told += part
    return told.decode("utf-8", "replace")
