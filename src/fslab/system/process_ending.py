"""End processes that fslab started, and never another process that has the same number (PID) later.

A process keeps its number until it is reaped, even after its end, and so does its group. Must not reap.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager

from fslab.system.files import closed_after

AT_ONCE = 64


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
        deadline = time.monotonic() + deadline_s
        while exit_code(leader) is None and time.monotonic() < deadline:
            time.sleep(0.01)


def wait_for_group(leader: int, deadline_s: float) -> None:
    """Wait up to ``deadline_s`` until nothing is left of a group whose leader was reaped."""
    deadline = time.monotonic() + deadline_s
    with contextlib.suppress(OSError):  # no such group, or another user's by now
        while time.monotonic() < deadline:
            os.killpg(leader, 0)
            time.sleep(0.01)
