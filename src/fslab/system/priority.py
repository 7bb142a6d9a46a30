"""Which processes the kernel lets run first, and which it kills first for lack of memory: sched(7),
sched_setscheduler(2), proc_pid_oom_score_adj(5).

Must not let run first what is measured: the kernel's own threads would keep their priority, and ratios can change. So,
at a load of 14 on two CPUs, ext4 deleted files 2.8 times as fast as XFS instead of 1.2 (two rounds each; why: open).
"""

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FIRST, _USUAL = -20, 0  # nice values
OOM_SCORE = Path("/proc/self/oom_score_adj")
KEPT_SCORE, EXPENDABLE_SCORE = -500, 500
# mm/oom_kill.c in Linux 5.3 and newer; the score is there since 5.4.
_KILLED = re.compile(
    r"^((?:Memory cgroup out|Out) of memory: Killed process \d+ \(.*\)) total-vm:(?:.* oom_score_adj:(-?\d+))?"
)
_starting = threading.Lock()


@contextmanager
def timely() -> Iterator[None]:
    """In this block, let this thread run as soon as it wakes up, although other programs want the CPU. It must sleep
    nearly all of the time. Processes that it starts have the usual priority. Without CAP_SYS_NICE, or where the control
    group has no time for it, this has no effect."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.sched_setscheduler(0, policy, parameters)


def put_first(leader: int) -> None:
    """Let all processes of the session that this process leads run before others, until ``put_back``.

    Without CAP_SYS_NICE, or where the kernel has no autogroups or a control group shares out the CPU, this has no
    effect.
    """
    _set(leader, _FIRST)


def put_back(leader: int) -> None:
    """Give the session its usual share. Its leader can have ended, but must not be reaped."""
    _set(leader, _USUAL)


def _set(leader: int, nice: int) -> None:
    with suppress(OSError):
        Path(f"/proc/{leader}/autogroup").write_text(str(nice))


@contextmanager
def protected() -> Iterator[None]:
    """Have fslab itself killed later than other processes. Without CAP_SYS_RESOURCE this has no effect."""
    with _adjusted(lambda found: min(found, KEPT_SCORE)):
        yield


@contextmanager
def expendable() -> Iterator[None]:
    """Have children that start in this block killed earlier than other processes. They inherit this value, so no child
    has the protection of fslab. The value is that of the process, so one thread at a time starts a child."""
    with _starting, _adjusted(lambda found: max(found, EXPENDABLE_SCORE)):
        yield


def killed_for_memory(messages: Iterable[str]) -> str | None:
    """Return what the kernel logged of the last process that it killed for lack of memory; None without one. A process
    that it kills later than those of ``expendable`` is another program's."""
    found = [
        match
        for match in map(_KILLED.match, messages)
        if match and int(match[2] or EXPENDABLE_SCORE) >= EXPENDABLE_SCORE
    ]
    return found[-1][1] if found else None


@contextmanager
def _adjusted(wanted: Callable[[int], int]) -> Iterator[None]:
    try:
        found = int(OOM_SCORE.read_text())
    except OSError:  # the kernel lacks this feature
        yield
        return
    _write(wanted(found))
    try:
        yield
    finally:
        _write(found)


def _write(value: int) -> None:
    with suppress(OSError):
        OOM_SCORE.write_text(str(value))
