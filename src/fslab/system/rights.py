"""What this process may do: capabilities(7), and whether it is root only in a user namespace. Only reads."""

import os
from pathlib import Path

from fslab.system import sysfs

SYS_ADMIN, SYS_RESOURCE = 21, 24  # capabilities(7)
_INITIAL = 0xEFFFFFFD  # the user namespace of the boot: include/linux/proc_ns.h, PROC_USER_INIT_INO


def has(capability: int, pid: int | None = None) -> bool | None:
    """Return whether a process (by default this one) has a capability in effect; None if unknown."""
    found = sysfs.field(Path(f"/proc/{pid or 'self'}/status"), "CapEff")
    return None if found is None else bool(int(found, 16) >> capability & 1)


def in_user_namespace() -> bool:
    """Return whether this process is in another user namespace than that of the boot: its root is another user."""
    try:
        return os.stat("/proc/self/ns/user").st_ino != _INITIAL  # noqa: PTH116 - of what the link leads to
    except OSError:  # a kernel without user namespaces
        return False


def missing_for_mounts() -> str | None:
    """Return what this process lacks to attach and mount devices, to follow "needs"; None if it lacks nothing."""
    if os.geteuid() != 0:
        return "root"
    if in_user_namespace():
        return "root outside of user namespaces"
    return "root with CAP_SYS_ADMIN" if has(SYS_ADMIN) is False else None
