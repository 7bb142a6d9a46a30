"""CPU time of a process with its descendants, and the time that they waited for a CPU. Only reads /proc."""

import os
import signal
from pathlib import Path
from typing import NamedTuple

from fslab.system import freezer, sysfs

PROC = Path("/proc")
_SIGCHLD = 1 << (signal.SIGCHLD - 1)


class TaskTimes(NamedTuple):
    """Seconds of all threads together. ``queued_s``: time on a run queue, without that of threads that have ended.
    ``counted``: no process ignores SIGCHLD; the kernel counts nothing of the ended children of one that does."""

    cpu_s: float
    queued_s: float
    counted: bool


def of_tree(pid: int) -> TaskTimes | None:
    """Return the times of a process and its descendants, with those that ended and were waited for.

    None if the process has been reaped. Sources: proc_pid_stat(5), fields 14 to 17 and 33; Documentation/scheduler/
    sched-stats.rst for ``schedstat``, without which the time on run queues is 0.
    """
    found = [times for each in (pid, *freezer.descendants(pid)) if (times := _of_process(each)) is not None]
    if not found:
        return None
    return TaskTimes(
        cpu_s=sum(one.cpu_s for one in found),
        queued_s=sum(one.queued_s for one in found),
        counted=all(one.counted for one in found),
    )


def _of_process(pid: int) -> TaskTimes | None:
    line = sysfs.text(PROC / str(pid) / "stat")
    if line is None:
        return None
    fields = line.rpartition(")")[2].split()
    own, of_children = (
        sum(map(int, fields[begin : begin + 2])) / os.sysconf("SC_CLK_TCK") for begin in (11, 13)
    )
    ran, queued = _of_threads(PROC / str(pid) / "task")
    # The scheduler's time is exact, but without threads that have ended; the process's is in ticks.
    counted = not int(fields[30]) & _SIGCHLD
    return TaskTimes(cpu_s=max(own, ran) + of_children, queued_s=queued, counted=counted)


def _of_threads(tasks: Path) -> tuple[float, float]:
    ran = queued = 0
    for task in sysfs.entries(tasks):
        numbers = (sysfs.text(task / "schedstat") or "0 0").split()
        ran, queued = ran + int(numbers[0]), queued + int(numbers[1])
    return ran / 1e9, queued / 1e9
