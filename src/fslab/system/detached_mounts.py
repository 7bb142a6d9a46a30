"""Kernel file systems without a mount point: detached mounts that only their descriptors can reach.

Nothing is left behind: the mount ends with the descriptor, even if this process is killed. Must not change what other
processes see. Linux 5.2 and newer, CAP_SYS_ADMIN.
"""

from functools import cache
from pathlib import Path

from fslab.system import syscalls
from fslab.system.syscalls import MountAttribute


@cache
def opened(filesystem: str, usual: str) -> Path:
    """Return where ``filesystem`` (tracefs, debugfs) can be read: its ``usual`` mount point, else a new detached mount
    that no other process sees. OSError if neither is possible."""
    if any(Path(usual).iterdir()):
        return Path(usual)
    mount = syscalls.detached_mount(filesystem, {}, MountAttribute(0))
    return Path(f"/proc/self/fd/{mount}")


def tracefs() -> Path:
    """Return the tracing file system. OSError for users other than root, and on kernels without CONFIG_FTRACE."""
    return opened("tracefs", "/sys/kernel/tracing")


def debugfs() -> Path:
    """Return the debugging file system. OSError for users other than root, and on kernels without debugfs."""
    return opened("debugfs", "/sys/kernel/debug")
