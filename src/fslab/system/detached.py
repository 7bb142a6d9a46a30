"""Kernel file systems without a mount point: detached mounts that only their descriptors can reach.

Nothing is left behind: the mount ends with the descriptor, even if this process is killed. Must not change what other
processes see. fsopen(2), fsconfig(2), fsmount(2): Linux 5.2 and newer, CAP_SYS_ADMIN.
"""

import ctypes
import os
from functools import cache
from pathlib import Path

from fslab.system.syscalls import checked

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # the same on every architecture
_CLOEXEC, _CONFIG_CREATE = 1, 6
_libc = ctypes.CDLL(None, use_errno=True)


@cache
def opened(filesystem: str, usual: str) -> Path:
    """Return where ``filesystem`` (tracefs, debugfs) can be read: its ``usual`` mount point, else a new detached mount
    that no other process sees. OSError if neither is possible."""
    if any(Path(usual).iterdir()):
        return Path(usual)
    context = _call(_FSOPEN, filesystem.encode(), _CLOEXEC)
    try:
        _call(_FSCONFIG, context, _CONFIG_CREATE, None, None, 0)
        mount = _call(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)
    return Path(f"/proc/self/fd/{mount}")


def tracefs() -> Path:
    """Return the tracing file system. OSError for users other than root, and on kernels without CONFIG_FTRACE."""
    return opened("tracefs", "/sys/kernel/tracing")


def debugfs() -> Path:
    """Return the debugging file system. OSError for users other than root, and on kernels without debugfs."""
    return opened("debugfs", "/sys/kernel/debug")


def _call(number: int, *arguments: object) -> int:
    return checked(_libc.syscall(number, *arguments))
