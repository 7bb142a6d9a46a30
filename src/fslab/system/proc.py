"""The only module that starts processes, from an argv list, never through a shell.

A process has a fixed locale, an empty stdin, its own session and a time limit. On any exception its whole process group
is ended. No other module of fslab may call subprocess, os.fork or os.exec.
"""

import contextlib
import errno
import logging
import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fslab.errors import (
    SIZES_HINT,
    NoSpaceError,
    ToolFailedError,
    ToolMissingError,
    ToolOutputError,
    ToolTimeoutError,
)
from fslab.system import path_owners, priority, processes, rights, search_path, signals
from fslab.system.files import memory_file
from fslab.system.tool_messages import one_line, reports_full_disk

log = logging.getLogger("fslab.proc")

ACCOUNTED = (
    "fslab-accounted"  # its source, engine/cli/src/accounted.rs, says why and in which form it reports
)
DEFAULT_TIMEOUT_S = 120.0
SEE_LOG = "dmesg(1) may have more information"  # mount(8), after a list of all that may be the reason
END_DEADLINE_S = 20.0  # freeing the memory of a large guest takes seconds
GROUP_DEADLINE_S = 2.0
_WORD = 100  # characters of a word with spaces in an error
OUTPUT_LIMIT_BYTES = 64 << 20  # of one stream; the longest output of a tool is some KiB
# Interval of the checks of output and space. In this time a fast child writes 200 MiB; a check takes some microseconds.
LOOK_EVERY_S = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Resources of a process and its waited-for children, from wait4(2): CPU seconds, peak memory.

    ``max_rss_bytes``: of the largest of these processes, at least the 2 MiB of ``ACCOUNTED``. None if the process was
    not ``accounted``: the kernel's figure then includes the memory of fslab, from which the process was forked.
    """

    user_s: float
    system_s: float
    max_rss_bytes: int | None
    voluntary_switches: int
    involuntary_switches: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """A process that has ended. ``returncode`` is negative for a signal, as in subprocess. ``usage``: None if it, or a
    daemon of it, ignored SIGCHLD: the kernel counts nothing of the children of such a process (wait(2))."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    duration_s: float
    usage: Usage | None


def shell_line(argv: Sequence[str]) -> str:
    """Return the command in a form that can be pasted into a shell."""
    return shlex.join(argv)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child: C locale, UTC, a PATH of trusted directories, and what the caller adds."""
    inherited = {key: os.environ[key] for key in ("HOME", "TMPDIR", "USER") if key in os.environ}
    # Without these, tools read no settings of a user, and use /tmp. In a HOME such as /tmp, others can put settings,
    # which can name programs (dpkg.cfg(5), popt(3)).
    for name, sticky in (("HOME", False), ("TMPDIR", True)):
        if name in inherited and not _is_closed(Path(inherited[name]), sticky=sticky):
            del inherited[name]
    path = ":".join(search_path.directories())
    return {**inherited, "PATH": path, "LC_ALL": "C", "TZ": "UTC", **(extra or {})}


JUDGED_S = 60.0
_judged_s: dict[tuple[object, ...], float] = {}  # when a place was found closed


def _is_closed(place: Path, *, sticky: bool) -> bool:
    """Return ``path_owners.is_closed``. What was closed once, only trusted users can open to others: it is judged again
    if it was replaced or has another owner or mode, or after ``JUDGED_S``, and not for each process, which takes a
    millisecond where images are mounted."""
    try:
        about = os.stat(place)  # noqa: PTH116 - for each process
    except OSError:
        return path_owners.is_closed(place, sticky=sticky)
    known = (place, sticky, about.st_dev, about.st_ino, about.st_uid, about.st_gid, about.st_mode)
    now = time.monotonic()
    if now - _judged_s.get(known, -JUDGED_S) < JUDGED_S:
        return True
    if is_closed := path_owners.is_closed(place, sticky=sticky):
        _judged_s[known] = now
    return is_closed


def run(
    argv: Sequence[str],
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    check: bool = True,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    failure: type[ToolFailedError] = ToolFailedError,
    watch: "Callable[[Running], None] | None" = None,
    accounted: bool = False,
    inherit: Sequence[int] = (),
    within: Sequence[str] = (),
    urgent: bool = False,
) -> Completed:
    """Run a command to its end and return its output, its duration and its resource usage.

    ``check``: on a non-zero exit raise ``failure`` with the end of stderr, or NoSpaceError if the output reports a full
    disk. ToolTimeoutError after ``timeout_s``; ToolMissingError if there is no such program; ``failure`` if it cannot
    be started; ToolOutputError if the command prints more than ``OUTPUT_LIMIT_BYTES`` on one stream, which also ends
    it. ``watch`` is called with it every ``LOOK_EVERY_S`` while it runs; an exception from it ends the command.
    ``accounted``: measure the memory and the duration of the command alone. ``inherit``: descriptors that it inherits.
    ``within``: words before the command, of a program that sets its surroundings and becomes it (``cgroup``).
    ``urgent``: let it run before other programs.
    """
    with running(
        argv, cwd=cwd, env=env, failure=failure, accounted=accounted, inherit=inherit, within=within
    ) as started:
        if urgent:
            priority.put_first(started.pid)
        deadline = time.monotonic() + timeout_s
        while not started.has_ended(min(deadline - time.monotonic(), LOOK_EVERY_S)):
            if watch is not None:
                watch(started)
            if time.monotonic() >= deadline:
                raise started.late(timeout_s)
        if urgent:
            priority.put_back(started.pid)  # for what it leaves running
        done = started.completed()
    if check and done.returncode != 0:
        raise failed(done, failure)
    return done


@dataclass(kw_only=True, slots=True)
class Running:
    """A command that runs, and its output. ``began_s``: when it was started (``time.monotonic``). ``report``: the
    descriptor of what is known of the command alone, if it is accounted."""

    argv: tuple[str, ...]
    process: subprocess.Popen[bytes]
    captured: tuple[int, int]
    report: int
    failure: type[ToolFailedError]
    poller: select.poll
    began_s: float
    ended_s: float | None = None

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its process group and of its session."""
        return self.process.pid

    def has_ended(self, wait_s: float) -> bool:
        """Wait up to ``wait_s`` for its end. ToolOutputError if it has printed too much."""
        if self.ended_s is None and self.poller.poll(max(0.0, wait_s) * 1000):
            self.ended_s = time.monotonic()
        _check_length(self.captured, shell_line(self.argv))
        return self.ended_s is not None

    def late(self, timeout_s: float) -> ToolTimeoutError:
        """Return the error of a command that runs for more than ``timeout_s``, with what it has printed so far."""
        told = one_line(*map(_contents, reversed(self.captured)))
        return ToolTimeoutError(
            f"still running after {timeout_s:.0f} s, ended{f'; it printed: {told}' if told else ''}",
            where=shell_line(self.argv),
            hint="if the workload needs longer, raise 'time_limit' in the study",
        )

    def said_bytes(self) -> int:
        """Return how many bytes it has written to standard error so far."""
        return os.fstat(self.captured[1]).st_size

    def completed(self) -> Completed:
        """Reap the ended command and return its output."""
        with signals.shielded():  # after wait4 the pid may be reused: no exception may lead to a kill
            _, status, resources = os.wait4(self.pid, 0)
            self.process.returncode = os.waitstatus_to_exitcode(status)
        usage = Usage(
            user_s=resources.ru_utime, system_s=resources.ru_stime, max_rss_bytes=None,
            voluntary_switches=resources.ru_nvcsw, involuntary_switches=resources.ru_nivcsw,
        )  # fmt: skip
        out, err = self.captured
        done = Completed(
            argv=self.argv, returncode=self.process.returncode, stdout=_contents(out), stderr=_contents(err),
            duration_s=(self.ended_s or time.monotonic()) - self.began_s, usage=usage,
        )  # fmt: skip
        return _of_program(done, _contents(self.report), self.failure)


@contextlib.contextmanager
def running(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    failure: type[ToolFailedError] = ToolFailedError,
    accounted: bool = False,
    inherit: Sequence[int] = (),
    within: Sequence[str] = (),
) -> Iterator[Running]:
    """Start a command, as ``run`` does. At the end of the block, its process group is ended if it still runs."""
    log.info("+ %s", shell_line(argv))
    with contextlib.ExitStack() as undo:
        # Memory files instead of pipes: the tool never waits for fslab, and no reader thread is needed.
        out, err, report = (
            undo.enter_context(memory_file(f"fslab-{name}")) for name in ("stdout", "stderr", "usage")
        )
        how: dict[str, Any] = {
            "stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "cwd": cwd, "env": env,
            "pass_fds": tuple(inherit),
        }  # fmt: skip
        words = tuple(argv)
        if accounted and (own := search_path.safe(ACCOUNTED)):
            words, how["pass_fds"] = (own, str(report), *argv), (*inherit, report)
        began_s = time.monotonic()
        # A signal between the start and the callback would leave a process that is never ended.
        with signals.shielded(), priority.expendable():
            child = _popen((*within, *words), failure, named=argv, **how)
            undo.callback(_end, child)
        poller = undo.enter_context(processes.awaited(child.pid))
        yield Running(
            argv=tuple(argv), process=child, captured=(out, err), report=report, failure=failure, poller=poller,
            began_s=began_s,
        )  # fmt: skip


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the process group of a child, unless it was reaped."""
    if child.returncode is None:
        processes.end_group(child.pid, GROUP_DEADLINE_S, signal.SIGTERM, signal.SIGKILL)
        if child.poll() is None:
            child.returncode = -signal.SIGKILL


@dataclass(kw_only=True, slots=True)
class Child:
    """A process that keeps running, in its own process group. The caller that started it must end it."""

    argv: tuple[str, ...]
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its process group."""
        return self.process.pid

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs. Only ``end`` reaps it."""
        known = self.process.returncode
        return processes.exit_code(self.pid) if known is None else known

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit code; None if the process still runs after ``timeout_s``.

        This does not use subprocess's wait with a timeout, which polls 20 times a second.
        """
        if self.exit_code() is None:
            with processes.awaited(self.pid) as poller:
                poller.poll(max(0.0, timeout_s) * 1000)
        return self.exit_code()

    def send(self, signum: signal.Signals) -> None:
        """Send a signal to the process, unless it has ended."""
        if self.exit_code() is None:
            os.kill(self.pid, signum)

    def end(self) -> None:
        """Kill the process group (SIGKILL) and reap the process. Can be called twice.

        Waits up to ``END_DEADLINE_S`` for the process, and up to ``GROUP_DEADLINE_S`` for the rest of its group. A
        process that waits for a dead device lives on; what it uses stays in the journal.
        """
        if self.process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.wait(END_DEADLINE_S) is None:
            log.warning("process %d (%s) cannot be killed", self.pid, shell_line(self.argv))
            return
        self.process.poll()
        processes.wait_for_group(self.pid, GROUP_DEADLINE_S)


def start(
    argv: Sequence[str],
    *,
    output: int,
    errors: int | None = None,
    stdin: int | None = None,
    inherit: Sequence[int] = (),
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    kept: bool = False,
) -> Child:
    """Start a command and let it run. Its output goes to the descriptor ``output``, its errors to ``errors`` or also to
    ``output``, its input from ``stdin`` or is empty. It inherits the descriptors of ``inherit``.

    ``kept``: the OOM killer does not kill it before fslab itself. ToolMissingError if there is no such program;
    ToolFailedError if it cannot be started.
    """
    log.info("+ %s", shell_line(argv))
    child = None
    try:
        with signals.shielded(), contextlib.nullcontext() if kept else priority.expendable():
            process = _popen(
                argv, ToolFailedError, stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=output, stderr=output if errors is None else errors, cwd=cwd, env=env, pass_fds=tuple(inherit),
            )  # fmt: skip
            child = Child(argv=tuple(argv), process=process)
    except BaseException:
        if child is not None:  # a signal came meanwhile: nobody else knows the process
            child.end()
        raise
    return child


_NOT_STARTED = frozenset({126, 127})  # of setpriv, env and shells: the program could not be executed


def tells_nothing(status: int) -> bool:
    """Return whether an exit status says nothing about what a program worked on: it was killed, or never began."""
    return status in _NOT_STARTED or -status in {signal.SIGKILL, *signals.CAUGHT}


def answer(argv: Sequence[str], **how: Any) -> Completed:
    """Run a program whose exit status is its answer. ``how``: as for ``run``. ToolFailedError if it told nothing."""
    done = run(argv, check=False, **how)
    if tells_nothing(done.returncode):
        raise failed(done)
    return done


def failed(
    done: Completed, failure: type[ToolFailedError] = ToolFailedError, reasons: Sequence[str] = ()
) -> ToolFailedError | NoSpaceError:
    """Return the error for a non-zero exit, with the tool's output. ``reasons``: what the kernel logged meanwhile."""
    number = -done.returncode
    ended = (
        f"was ended by signal {number} ({signal.strsignal(number)})" if number > 0 else f"exited {-number}"
    )
    program = next((word for word in done.argv if word != "env" and "=" not in word), done.argv[0])
    what = f"{Path(program).name} {ended}"
    if reasons:
        what += f": the kernel logged: {' | '.join(reasons)}"
    told = one_line(done.stderr, done.stdout)
    if told and not (reasons and SEE_LOG in told):
        what += f"{'; it printed' if reasons else ''}: {told}"
    # Of a script or a document only the beginning: the trial's record has the whole command.
    where = shell_line(
        [f"{word[:_WORD]}…" if len(word) > _WORD and " " in word else word for word in done.argv]
    )
    if reports_full_disk(done.stderr, done.stdout):
        return NoSpaceError(what, where=where, hint=SIZES_HINT)
    return failure(what, where=where)


def _contents(descriptor: int) -> str:
    size = min(
        os.fstat(descriptor).st_size, OUTPUT_LIMIT_BYTES
    )  # a daemon of the command can still make it longer
    return os.pread(descriptor, size, 0).decode("utf-8", "replace")


def _check_length(captured: Sequence[int], line: str) -> None:
    """Raise ToolOutputError if the output is too long: all of it is in memory, and would be stored."""
    for descriptor in captured:
        if os.fstat(descriptor).st_size > OUTPUT_LIMIT_BYTES:
            raise ToolOutputError(f"printed more than {OUTPUT_LIMIT_BYTES >> 20} MiB, ended", where=line)


def _of_program(done: Completed, report: str, failure: type[ToolFailedError]) -> Completed:
    """Return what ``ACCOUNTED`` reports of the program that it ran; ``done`` if there is no report.

    ``failure`` or ToolMissingError if it could not start the program.
    """
    if not report:
        return done
    if report.startswith("errno "):
        number = int(report.split()[1])
        raise _cannot_start(OSError(number, os.strerror(number)), done.argv, failure)
    status, duration_ns, *used = map(int, report.split())
    usage = None
    if used:
        user_us, system_us, max_rss_kib, voluntary, involuntary = used
        usage = Usage(
            user_s=user_us / 1e6, system_s=system_us / 1e6, max_rss_bytes=max_rss_kib << 10,
            voluntary_switches=voluntary, involuntary_switches=involuntary,
        )  # fmt: skip
    return replace(
        done, returncode=os.waitstatus_to_exitcode(status), duration_s=duration_ns / 1e9, usage=usage
    )


def _cannot_start(
    error: OSError, argv: Sequence[str], failure: type[ToolFailedError], place: str = ""
) -> ToolFailedError | ToolMissingError:
    """Return the error for a process that cannot be started. ``place``: the directory, if that is the reason."""
    if isinstance(error, FileNotFoundError) and not place:
        return ToolMissingError(f"'{argv[0]}' is not installed", hint="fslab doctor")
    limits = {errno.EMFILE: "open files (ulimit -n)", errno.EAGAIN: "processes (ulimit -u)"}
    hint = f"raise the limit of {limits[error.errno]}" if error.errno in limits else None
    return failure(f"cannot be run{place}: {error.strerror}", where=shell_line(argv), hint=hint)


def _popen(
    argv: Sequence[str],
    failure: type[ToolFailedError],
    *,
    env: Mapping[str, str] | None,
    named: Sequence[str] | None = None,
    **how: Any,
) -> subprocess.Popen[bytes]:
    """Start a process. ``failure`` if it cannot be started, ToolMissingError if there is no such program, or only one
    that another user can change."""
    if why := search_path.changeable(argv):
        raise ToolMissingError(f"not run: {why}", where=shell_line(argv), hint="fslab doctor")
    rights.leave_keyring()
    try:
        return subprocess.Popen(argv, env=environment(env), start_new_session=True, close_fds=True, **how)
    except OSError as error:
        # subprocess names the directory in the error if the directory is the reason.
        place = f" in {how['cwd']}" if how["cwd"] is not None and error.filename == how["cwd"] else ""
        raise _cannot_start(error, named if place and named else argv, failure, place) from error
    except ValueError as error:  # an argument contains a NUL character
        raise failure(f"cannot be run: {error}", where=shell_line(argv)) from error
