"""Programs and servers of applications: ended with the process that started them; servers run as the user nobody."""

from __future__ import annotations

import math
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from fslab.errors import ToolFailedError
from fslab.system import proc, users
from fslab.system.files import closed_after, memory_file
from fslab.system.signals import Teardown, shielded
from fslab.system.tools import Tool, require

# Of what a program does with data: to recover, check or sync it takes long on a slow disk. A trial has its own limit.
LIMIT_S = 24 * 3600.0
END_S = 60.0  # for the end of a server that got a signal, or closed its connections
DESCRIPTORS = "/proc/self/fd"
_POLL_S = 0.02
_SAID_BYTES = 1 << 20
_ANSWER_BYTES = 4096  # most answers have a few bytes, and a large buffer takes microseconds


def own_directory(directory: Path) -> None:
    """Give a new directory to the user nobody, if fslab runs as root."""
    if os.geteuid() == 0:
        os.chown(directory, users.NOBODY, users.NOBODY)


def unprivileged(*argv: str) -> list[str]:
    """Return a command that runs as the user nobody, without any right of root's, if fslab runs as root."""
    return list(argv) if os.geteuid() != 0 else users.unprivileged(argv)


def ending_with_parent(*argv: str, by: signal.Signals) -> list[str]:
    """Return a command that gets a signal when the process ends that started it, also when that is killed."""
    return [require(users.SETPRIV), "--pdeathsig", by.name.removeprefix("SIG"), "--", *argv]


def confined(tool: Tool, *words: str) -> list[str]:
    """Return a command that runs a program as ``unprivileged`` does, and kills it when this process ends."""
    return unprivileged(*ending_with_parent(require(tool), *words, by=signal.SIGKILL))


def run_program(tool: Tool, *words: str | Path, cwd: Path) -> proc.Completed:
    """Run a program of a step. It ends with this process; how long it may take is the trial's to say."""
    argv = (require(tool), *map(str, words))
    ending = ending_with_parent(*argv, by=signal.SIGKILL)
    done = replace(proc.run(ending, cwd=cwd, timeout_s=math.inf, check=False), argv=argv)
    if done.returncode != 0:
        raise proc.failed(done)
    return done


class DamagedError(ToolFailedError):
    """A server reports an error about its data, or crashes on it."""


class NoAnswerError(Exception):
    """A program ended before it answered, or took longer than the limit. Its text: what it had printed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningServer:
    """A server that runs. ``log``: the descriptor of what it prints."""

    child: proc.Child
    log: int

    def said(self) -> str:
        """Return what it has printed: of much, the end."""
        size = os.fstat(self.log).st_size
        return os.pread(self.log, _SAID_BYTES, max(0, size - _SAID_BYTES)).decode("utf-8", "replace")

    def wait_until(self, ready: Callable[[], bool]) -> bool:
        """Return whether it is ready within the time limit, and has not ended."""
        deadline = time.monotonic() + LIMIT_S
        while self.child.wait(_POLL_S) is None and time.monotonic() < deadline:
            if ready():
                return True
        return False


@contextmanager
def reached(directory: Path) -> Iterator[tuple[str, tuple[int]]]:
    """Yield a path to a directory below those that only root may enter, and the descriptor that a program must inherit
    for it. So it needs no right of root's, which the data could use. DamagedError if there is no such directory."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise DamagedError(f"the directory of the data: {error.strerror}") from error
    with closed_after(descriptor):
        yield f"{DESCRIPTORS}/{descriptor}", (descriptor,)


@contextmanager
def started(
    argv: Sequence[str], *, inherit: Sequence[int], ended_by: signal.Signals, stdin: int | None = None
) -> Iterator[RunningServer]:
    """Start a server. At the end of the block it gets a signal, if it still runs, and is killed if that is no use.
    ``stdin``: the descriptor of its standard input."""
    with memory_file("fslab-server") as log, Teardown() as undo:
        with shielded():
            child = proc.start(argv, stdin=stdin, output=log, errors=log, cwd=Path("/"), inherit=inherit)
            undo.callback(child.end)
            undo.callback(child.wait, END_S)
            undo.callback(child.send, ended_by)
        yield RunningServer(child=child, log=log)


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialogue:
    """A program that reads lines, and prints ``prompt`` when it waits for the next one. ``errors``: the descriptor of
    what it prints there; ``ready``: waits for answers. A new select(2) for each line, and a large buffer, took 5 µs
    longer: qemu-io gets two lines for a write, which in memory takes 60 to 130 µs."""

    child: proc.Child
    prompt: bytes
    lines: int
    answers: int
    errors: int
    ready: select.poll

    def say(self, line: str) -> str:
        """Send a line; "" waits for the first prompt. Return what is printed until the next prompt, or raise
        NoAnswerError."""
        if line:
            with suppress(BrokenPipeError):  # it has ended: there is no answer, and it told why
                os.write(self.lines, f"{line}\n".encode())
        deadline, told = time.monotonic() + LIMIT_S, b""
        while not told.endswith(self.prompt):
            is_ready = self.ready.poll(max(0.0, deadline - time.monotonic()) * 1000)
            part = os.read(self.answers, _ANSWER_BYTES) if is_ready else b""
            if not part:
                raise NoAnswerError(told.decode("utf-8", "replace"))
            told += part
        return told.removesuffix(self.prompt).decode("utf-8", "replace")

    def complaints(self) -> str:
        """Return what it has printed as errors."""
        return os.pread(self.errors, _SAID_BYTES, 0).decode("utf-8", "replace")


@contextmanager
def dialogue(
    argv: Sequence[str],
    prompt: bytes,
    *,
    inherit: Sequence[int],
    cwd: Path = Path("/"),
) -> Iterator[Dialogue]:
    """Start a program that answers lines. At the end of the block its input is closed, and it is killed if it does not
    end then."""
    with Teardown() as undo:
        errors = undo.enter_context(memory_file("fslab-errors"))
        theirs, ours = (undo.enter_context(os.fdopen(end, mode, 0)) for end, mode in _pipe())
        answers, output = (undo.enter_context(os.fdopen(end, mode, 0)) for end, mode in _pipe())
        with shielded():
            child = proc.start(
                argv, stdin=theirs.fileno(), output=output.fileno(), errors=errors, cwd=cwd,
                inherit=inherit,
            )  # fmt: skip
            undo.callback(child.end)
            undo.callback(child.wait, LIMIT_S)  # a killed server leaves shared memory of the machine behind
            undo.callback(ours.close)
        theirs.close()
        output.close()
        ready = select.poll()
        ready.register(answers.fileno(), select.POLLIN)
        yield Dialogue(
            child=child, prompt=prompt, lines=ours.fileno(), answers=answers.fileno(), errors=errors,
            ready=ready,
        )  # fmt: skip


def _pipe() -> tuple[tuple[int, str], tuple[int, str]]:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    return (reading, "rb"), (writing, "wb")
