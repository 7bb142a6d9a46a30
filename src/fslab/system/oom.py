"""Make the OOM killer kill the tools that fslab starts before fslab itself: proc_pid_oom_score_adj(5).

A killed tool costs one trial. If fslab is killed, the rest of the campaign is lost, and images and mounts remain until
the next run.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

OWN = Path("/proc/self/oom_score_adj")
KEPT, EXPENDABLE = -500, 500


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
