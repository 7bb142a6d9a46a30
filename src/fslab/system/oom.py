"""Make the OOM killer kill the tools that fslab starts before fslab itself: proc_pid_oom_score_adj(5).

A killed tool costs one trial. If fslab is killed, the rest of the campaign is lost, and images and mounts remain until
the next run.
"""

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

OWN = Path("/proc/self/oom_score_adj")
KEPT, EXPENDABLE = -500, 500
# mm/oom_kill.c in Linux 5.3 and newer; the score is there since 5.4.
_KILLED = re.compile(
    r"^((?:Memory cgroup out|Out) of memory: Killed process \d+ \(.*\)) total-vm:(?:.* oom_score_adj:(-?\d+))?"
)


@contextmanager
def protected() -> Iterator[None]:
    """Have fslab itself killed later than other processes. Without CAP_SYS_RESOURCE this has no effect."""
    with _adjusted(lambda found: min(found, KEPT)):
        yield


_starting = threading.Lock()


@contextmanager
def expendable() -> Iterator[None]:
    """Have children that start in this block killed earlier than other processes. They inherit this value, so no child
    has the protection of fslab. The value is that of the process, so one thread at a time starts a child."""
    with _starting, _adjusted(lambda found: max(found, EXPENDABLE)):
        yield


def killed(messages: Iterable[str]) -> str | None:
    """Return what the kernel logged of the last process that it killed for lack of memory; None without one. A process
    that it kills later than those of ``expendable`` is another program's."""
    found = [
        match for match in map(_KILLED.match, messages) if match and int(match[2] or EXPENDABLE) >= EXPENDABLE
    ]
    return found[-1][1] if found else None


@contextmanager
def _adjusted(wanted: Callable[[int], int]) -> Iterator[None]:
    try:
        found = int(OWN.read_text())
    except OSError:  # the kernel lacks this feature
        yield
        return
    _write(wanted(found))
    try:
        yield
    finally:
        _write(found)


def _write(value: int) -> None:
    with contextlib.suppress(OSError):
        OWN.write_text(str(value))
