"""PostgreSQL: a transaction inserts one row and updates one counter, and is acknowledged when its commit returns.

The server runs in single-user mode (postgres(1), --single): the same transaction log, commit and recovery, without
processes in the background. Sources of its promises: postgresql.org/docs/15/runtime-config-wal.html.
"""

from __future__ import annotations

import hashlib
import os
import re
import select
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fslab.applications import Application, Contract, RecoveredData, Settings
from fslab.errors import ToolFailedError
from fslab.storage.promises import Promise, Promises
from fslab.system import proc
from fslab.system.tools import Tool, require

LIMIT_S = 60.0
PROMPT = b"backend> "
CHECKPOINT_EVERY = 4
_TOOL = Tool(program="postgres", package="postgresql")
_INITDB = Tool(program="initdb", package="postgresql")
_SETPRIV = Tool(program="setpriv", package="util-linux")
_DOCS = "runtime-config-wal"
_NOBODY = "65534"
_CREATED = (
    "CREATE TABLE transactions (number integer PRIMARY KEY, contents bytea)",
    "CREATE TABLE counter (last integer)",
    "INSERT INTO counter VALUES (0)",
)
# Shared memory in the cluster's own directory: what /dev/shm has would outlive a server that is killed.
_OWN = {"shared_buffers": "1MB", "log_min_messages": "error", "dynamic_shared_memory_type": "mmap"}
_READ = (
    "SELECT number, md5(contents) FROM transactions ORDER BY number",
    "SELECT last FROM counter",
    "SET enable_seqscan = off",
    "SELECT count(number) AS indexed FROM transactions WHERE number > 0",
)
_FIGURE = re.compile(r'^\t +\d+: (number|md5|last|indexed) = "(\w+)"\t', re.MULTILINE)
_TROUBLE = re.compile(r"\b(?:ERROR|FATAL|PANIC): +(.*)")


class Postgresql(Application):
    """The defaults of the settings are those of PostgreSQL. Its data has checksums."""

    summary = (
        "PostgreSQL: are committed transactions there after a power cut, by fsync and synchronous_commit"
    )
    tool = _TOOL
    settings = {
        "synchronous_commit": ("on", "off"),
        "fsync": ("on", "off"),
        "full_page_writes": ("on", "off"),
    }

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return the promises: without synchronous_commit, commits may be lost, but the data stays consistent."""
        given = {name for name, value in settings.items() if value == "on"}
        consistent = {"fsync", "full_page_writes"} <= given
        durable = consistent and "synchronous_commit" in given
        return Contract(
            durable=Promise(given=durable, source=f"{_DOCS}: {_DURABLE if durable else _NOT_DURABLE}"),
            consistent=Promise(given=consistent, source=f"{_DOCS}: {_SAFE if consistent else _UNSAFE}"),
        )

    def lay_out(self, directory: Path, settings: Settings) -> None:
        """Create a cluster with two tables."""
        os.chown(directory, int(_NOBODY), int(_NOBODY))
        proc.run(
            _unprivileged(
                require(_INITDB), "-D", str(directory), "--auth=trust", "--encoding=UTF8", "--no-locale",
                "--data-checksums", "--wal-segsize=1", "--username=fslab", "--no-sync",
            ),
            timeout_s=LIMIT_S, cwd=Path("/"),
        )  # fmt: skip
        with _session(directory, settings) as say:
            for statement in _CREATED:
                say(statement)

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Start one server for all transactions. Before every fourth one it makes a checkpoint."""
        with _session(directory, settings) as say:

            def commit(number: int, contents: bytes) -> None:
                if number % CHECKPOINT_EVERY == 0:
                    say("CHECKPOINT")
                # Several statements in one message are one transaction.
                say(  # only numbers and hexadecimal digits
                    f"INSERT INTO transactions VALUES ({number}, decode('{contents.hex()}', 'hex')); "  # noqa: S608
                    f"UPDATE counter SET last = {number}"
                )

            yield commit

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Start the server, which replays its log; read table, counter and index."""
        try:
            with _session(directory, {"fsync": "off"}) as say:
                told = "".join(say(statement) for statement in _READ)
        except ToolFailedError as error:
            return RecoveredData(problem=str(error))
        figures: dict[str, list[str]] = {"number": [], "md5": [], "last": [], "indexed": []}
        for name, value in _FIGURE.findall(told):
            figures[name].append(value)
        numbers = [int(number) for number in figures["number"]]
        if [str(len(numbers))] != figures["indexed"]:
            return RecoveredData(problem=f"the index has {figures['indexed']} rows, the table {len(numbers)}")
        if numbers != list(range(1, len(numbers) + 1)) or figures["last"] != [str(len(numbers))]:
            return RecoveredData(
                problem=f"a partial transaction: the counter is {figures['last']}, the rows are {numbers}"
            )
        for number, digest in zip(numbers, figures["md5"], strict=True):
            if digest != hashlib.md5(contents(number), usedforsecurity=False).hexdigest():
                return RecoveredData(problem=f"transaction {number} has other contents than were committed")
        return RecoveredData(transactions=frozenset(numbers))

    def seconds_each(self, settings: Settings) -> float:  # noqa: ARG002
        return 0.01


_DURABLE = "with synchronous_commit, a commit waits until its log is on the disk"
_NOT_DURABLE = "the latest commits may be lost after a crash"
_SAFE = "fsync and full_page_writes: the cluster can recover to a consistent state"
_UNSAFE = "without fsync or full_page_writes, a power failure can corrupt the data"


def _unprivileged(*argv: str) -> list[str]:
    """Return a command that runs as nobody, because the server refuses root.

    It keeps the right to pass through root's directories (CAP_DAC_READ_SEARCH).
    """
    kept = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    identity = (f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups")
    return [require(_SETPRIV), *identity, *kept, "--", *argv]


@contextmanager
def _session(directory: Path, settings: Settings) -> Iterator[Callable[[str], str]]:
    """Run a server. Yield a function that sends one line, and returns what is printed until the next prompt.

    ToolFailedError if the server refuses a line, or ends. After the last line it makes a checkpoint and ends.
    """
    options = {**settings, **_OWN}
    words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    argv = _unprivileged(require(_TOOL), "--single", "-D", str(directory), *words, "postgres")
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
            trouble = _TROUBLE.search(os.pread(errors.fileno(), 1 << 20, 0).decode("utf-8", "replace"))
            if trouble or told is None:
                raise ToolFailedError(
                    f"PostgreSQL: {trouble[1] if trouble else 'it ended without a message'}"
                )
            return told

        say("")
        yield lambda line: say(f"{line}\n")


def _pipe() -> tuple[tuple[int, str], tuple[int, str]]:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    return (reading, "rb"), (writing, "wb")


def _until_prompt(descriptor: int) -> str | None:
    """Return what the server prints until its next prompt; None if it ends before, or takes too long."""
    deadline, told = time.monotonic() + LIMIT_S, b""
    while not told.endswith(PROMPT):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(descriptor, 1 << 16) if ready else b""
        if not part:
            return None
        told += part
    return told.decode("utf-8", "replace")
