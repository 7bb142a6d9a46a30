"""Kernel file systems that need no mount point: a detached mount, reachable by its descriptor only.

Nothing can be left behind: it goes with the descriptor, whatever becomes of this process. Changes nothing that others
see. fsopen(2), fsconfig(2), fsmount(2): Linux 5.2 and newer, CAP_SYS_ADMIN.
"""

import ctypes
import os
from functools import cache
from pathlib import Path

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # the same on every architecture
_CLOEXEC, _CONFIG_CREATE = 1, 6
_libc = ctypes.CDLL(None, use_errno=True)


@cache
def opened(filesystem: str, usual: str) -> Path:
    """Where ``filesystem`` (tracefs, debugfs) can be read: where it is ``usual``\\ ly mounted, else a mount of ours
    that no other process sees. OSError where neither is possible."""
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
    """The tracing file system; OSError for other users than root and kernels without CONFIG_FTRACE."""
    return opened("tracefs", "/sys/kernel/tracing")


def debugfs() -> Path:
    """The debugging file system; OSError likewise."""
    return opened("debugfs", "/sys/kernel/debug")


def _call(number: int, *arguments: object) -> int:
    found = int(_libc.syscall(number, *arguments))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found
