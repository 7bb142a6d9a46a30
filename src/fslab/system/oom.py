"""Which process goes first when memory is gone: the tools that fslab starts, before fslab itself.

A tool that is killed costs one trial; fslab, killed, costs the rest of the campaign and leaves images and mounts to the
next run. proc_pid_oom_score_adj(5).
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

OWN = Path("/proc/self/oom_score_adj")
KEPT, EXPENDABLE = -500, 500


@contextmanager
def protected() -> Iterator[None]:
    """Fslab itself is killed later than others; without the privilege (CAP_SYS_RESOURCE) as early as they are."""
    with _adjusted(lambda found: min(found, KEPT)):
        yield


@contextmanager
def expendable() -> Iterator[None]:
    """What is started meanwhile is killed earlier than others. A child inherits it, so none ever has our own."""
    with _adjusted(lambda found: max(found, EXPENDABLE)):
        yield


@contextmanager
def _adjusted(wanted: Callable[[int], int]) -> Iterator[None]:
    try:
        found = int(OWN.read_text())
    except OSError:  # no such kernel feature
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
