"""Processes with their descendants: which there are, their state and CPU time, and how long they waited for a CPU, by
/proc; and the end of those that fslab started, never of another one that has the same number (PID) later.

A process keeps its number until it is reaped, even after its end, and so does its group. Must not reap.

Sources: proc_pid_stat(5); Documentation/scheduler/sched-stats.rst for ``schedstat``.
"""

import contextlib
import os
import select
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from fslab.system import sysfs, waiting
from fslab.system.files import closed_after

PROC = Path("/proc")
ENDED = frozenset("ZX")
AT_ONCE = 64
_SIGCHLD = 1 << (signal.SIGCHLD - 1)


class TaskTimes(NamedTuple):
    """Seconds of all threads together. ``queued_s``: time on a run queue, without that of threads that have ended; 0 if
    the kernel does not count it. ``counted``: no process ignores SIGCHLD; the kernel counts nothing of the ended
    children of one that does."""

    cpu_s: float
    queued_s: float
    counted: bool


def stat(process: Path) -> list[str] | None:
    """Return the fields after the name in the ``stat`` of a process or thread, the state first; None if it is gone.

    The name may contain brackets and blanks. A killed process with a thread that waits in the kernel stays a zombie.
    """
    line = sysfs.text(process / "stat")
    return None if line is None else line.rpartition(")")[2].split()


def lives(pid: int) -> bool:
    """Return whether a process is there and has not ended or been killed."""
    fields = stat(PROC / str(pid))
    return fields is not None and fields[0] not in ENDED


def began(pid: int) -> str | None:
    """Return when a process began, in clock ticks since the boot, which tells it from an earlier one with its number;
    None if it is gone."""
    fields = stat(PROC / str(pid))
    return None if fields is None else fields[19]


def states(pid: int) -> list[str]:
    """Return the state of each thread of a process."""
    return [
        fields[0] for task in sysfs.entries(PROC / str(pid) / "task") if (fields := stat(task)) is not None
    ]


def session(leader: int) -> list[int]:
    """Return the processes of the session that ``leader`` leads, without those that have ended."""
    every = ((int(entry.name), stat(entry)) for entry in PROC.iterdir() if entry.name.isdecimal())
    return [pid for pid, fields in every if fields and int(fields[3]) == leader and fields[0] not in ENDED]


def descendants(*pids: int) -> Iterator[int]:
    """Yield the children of these processes, their children and so on, each once (``/proc/PID/task/TID/children``,
    proc(5))."""
    left, seen = [*pids], set[int]()
    while left:
        for task in sysfs.entries(PROC / str(left.pop()) / "task"):
            for child in map(int, (sysfs.text(task / "children") or "").split()):
                if child not in seen:
                    seen.add(child)
                    left.append(child)
                    yield child


def times(pid: int) -> TaskTimes | None:
    """Return the times of a process and its descendants, with those that ended and were waited for; None if the process
    has been reaped."""
    found = [own for each in (pid, *descendants(pid)) if (own := _own_times(PROC / str(each))) is not None]
    if not found:
        return None
    cpu_s, queued_s, counted = zip(*found, strict=True)
    return TaskTimes(cpu_s=sum(cpu_s), queued_s=sum(queued_s), counted=all(counted))


def _own_times(process: Path) -> TaskTimes | None:
    if (fields := stat(process)) is None:
        return None
    own, of_children = (sum(map(int, fields[at : at + 2])) / os.sysconf("SC_CLK_TCK") for at in (11, 13))
    ran = queued = 0
    for task in sysfs.entries(process / "task"):
        numbers = (sysfs.text(task / "schedstat") or "0 0").split()
        ran, queued = ran + int(numbers[0]), queued + int(numbers[1])
    # The scheduler's time is exact, but without threads that have ended; the process's is in ticks.
    counted = not int(fields[30]) & _SIGCHLD
    return TaskTimes(cpu_s=max(own, ran / 1e9) + of_children, queued_s=queued / 1e9, counted=counted)


def exit_code(pid: int) -> int | None:
    """Return the exit code of a child that was not reaped, negative for a signal; None while it runs."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


@contextlib.contextmanager
def awaited(pid: int) -> Iterator[select.poll]:
    """Yield a poll object that has an event when the process has ended."""
    with referred(pid) as pidfd:
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        yield poller


def referred(pid: int) -> AbstractContextManager[int]:
    """Yield a descriptor of a process (pidfd). ProcessLookupError if there is none."""
    return closed_after(os.pidfd_open(pid))


@contextlib.contextmanager
def sent(
    pids: Iterable[int], signum: signal.Signals, listed: Callable[[], Collection[int]]
) -> Iterator[dict[int, int]]:
    """Send a signal to those of ``pids`` that ``listed`` still returns when there is a descriptor of them: until then,
    another process can have got a number. Yields the descriptors (pidfd) by process."""
    with contextlib.ExitStack() as undo:
        found = {}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                found[pid] = undo.enter_context(referred(pid))
        still = found.keys() & set(listed())
        for pid in still:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(found[pid], signum)
        yield {pid: found[pid] for pid in still}


def killed(pids: Iterable[int], listed: Callable[[], Collection[int]]) -> Iterator[int]:
    """Send SIGKILL as ``sent`` does, to ``AT_ONCE`` processes at a time, because descriptors are limited. Yield those
    that it was sent to; meanwhile, no other process can get their number."""
    left = [*pids]
    for first in range(0, len(left), AT_ONCE):
        with sent(left[first : first + AT_ONCE], signal.SIGKILL, listed) as found:
            yield from found


def end_group(leader: int, deadline_s: float, *signums: signal.Signals) -> None:
    """Send the signals to the process group of a child that was not reaped, one after the other. After each, wait up to
    ``deadline_s`` for the child: a process in an uninterruptible sleep outlives all."""
    for signum in signums:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signum)
        waiting.until(lambda: exit_code(leader) is not None, deadline_s, 0.01)


def wait_for_group(leader: int, deadline_s: float) -> None:
    """Wait up to ``deadline_s`` until nothing is left of a group whose leader was reaped."""
    with contextlib.suppress(OSError):  # no such group, or another user's by now
        waiting.until(lambda: os.killpg(leader, 0), deadline_s, 0.01)
