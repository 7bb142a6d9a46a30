"""What this process may do: capabilities(7), whether it is root only in a user namespace, and root's session keyring
(session-keyring(7)), which no process that fslab starts gets.

Whoever has the keyring possesses its keys, such as passphrases of disks and Kerberos tickets, also as another user.
"""

import errno
import os
import threading
from pathlib import Path

from fslab.system import syscalls, sysfs

SYS_ADMIN, SYS_RESOURCE = 21, 24  # capabilities(7)
_INITIAL = 0xEFFFFFFD  # the user namespace of the boot: include/linux/proc_ns.h, PROC_USER_INIT_INO
_WRITTEN = (
    "/sys/block",
    "/proc/sys/vm/drop_caches",
)  # where a disk's queue is set, and the page cache is dropped
_thread = threading.local()
_NO_KEYS = {errno.ENOSYS, errno.EPERM, errno.EACCES}  # in the kernel, or for this container


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
    if has(SYS_ADMIN) is False:
        return "root with CAP_SYS_ADMIN"
    # In many containers, both are read-only, and in a chroot, they are often missing.
    return next((f"root with a writable {each}" for each in _WRITTEN if not os.access(each, os.W_OK)), None)


def remedy(missing: str) -> str:
    """Return what to do about what ``missing_for_mounts`` returns: in a container, its root cannot do more by sudo."""
    if missing == "root":
        return "run it with sudo"
    if in_user_namespace():
        return "run it as root of the host, not of a user namespace or a rootless container"
    return "in a container, start it with docker run --privileged -v /dev:/dev"


def leave_keyring() -> None:
    """Have an empty session keyring in this thread, if it is root's. Whoever is not root starts commands only as the
    same user."""
    if os.geteuid() != 0 or getattr(_thread, "left", False):
        return
    try:
        syscalls.join_new_session_keyring()
    except OSError as error:
        if error.errno not in _NO_KEYS:
            raise
    _thread.left = True
