"""Freezes a file system so that it cannot stay frozen: a process of its own thaws it, also if the test is killed.

What writes to a frozen file system cannot be ended, not even by SIGKILL, and what is left of it after its mount is
detached can only be thawed by who has opened it before.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# FIFREEZE and FITHAW, ioctl_fsfreeze(2). Ends when its standard input does: when the test closes it, or is gone.
FREEZER = """
import contextlib, fcntl, os, signal, sys
place = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(signum, lambda *_: sys.exit())
try:
    fcntl.ioctl(place, 0xC0045877, 0)
    print("frozen", flush=True)
    sys.stdin.read()
finally:
    with contextlib.suppress(OSError):
        fcntl.ioctl(place, 0xC0045878, 0)
"""


@contextmanager
def frozen(place: Path) -> Iterator[int]:
    """Freeze the file system that is mounted at ``place``, and yield the id of the process that thaws it."""
    argv = [sys.executable, "-I", "-S", "-c", FREEZER, str(place)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"frozen\n"
        yield process.pid
