"""What only this process sees: its namespaces of users and of the network, and mounts at no place, which only a
descriptor reaches: kernel file systems, and an overlayfs of layers of any source.

Nothing is left behind: such a mount ends with the descriptor, even if this process is killed. A mount namespace would
do the same, but would keep the devices of all other mounts of the machine in use meanwhile. Linux 5.2 and newer.
"""

import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from fslab.system import syscalls, trees
from fslab.system.files import closed_after, opened
from fslab.system.syscalls import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUSER, MountAttribute

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1  # netdevice(7)
UPPER, WORK = "upper", "work"
# As container engines mount it. Kernels differ in their defaults; with `index`, layers cannot be used again elsewhere.
_OVERLAY_OPTIONS = {"index": "off", "metacopy": "off"}
_OVERLAY_ATTRIBUTES = MountAttribute.NOSUID | MountAttribute.NODEV | MountAttribute.NOEXEC
_WHY_NO_OVERLAY = {
    errno.ENODEV: "this kernel has no overlayfs (modprobe overlay)",
    errno.ENOSYS: "this kernel is older than Linux 5.2",
    errno.EPERM: "as another user than root it needs Linux 5.11 and user namespaces (sysctl user.max_user_namespaces)",
    errno.EINVAL: "the kernel accepts no layers on this file system (dmesg(1) says why)",
}


@cache
def enter_user_namespace() -> None:
    """Get the right to mount, and keep the user and the group (user_namespaces(7)), for the rest of the process, which
    must have one thread. PermissionError if that fails: the kernel's own error for too many namespaces is that of a
    full disk."""
    user, group = os.geteuid(), os.getegid()
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    try:
        syscalls.unshare(CLONE_NEWUSER | CLONE_NEWNS)
        for name, text in maps.items():
            Path("/proc/self", name).write_text(text, "ascii")
    except OSError as error:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM)) from error


@contextmanager
def own_network() -> Iterator[None]:
    """Have a network with nothing but a loopback. What is started or opened in the block keeps it; nothing else reaches
    it. Another user than root also gets a user namespace, and has no other network for the rest of the process."""
    with opened("/proc/thread-self/ns/net") as former:
        _may_unshare()
        syscalls.unshare(CLONE_NEWNET)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
                fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))
            yield
        finally:
            if os.geteuid() == 0:  # setns(2) needs root's rights over the former one
                syscalls.setns(former, CLONE_NEWNET)


def _may_unshare() -> None:
    """Get the right to make namespaces. PermissionError with the remedy if that fails."""
    try:
        if os.geteuid() != 0:
            enter_user_namespace()
    except PermissionError as error:
        why = "as another user than root it needs user namespaces (sysctl user.max_user_namespaces)"
        raise PermissionError(error.errno, f"{error.strerror}: {why}", "network namespace") from error


@cache
def _of_kernel(filesystem: str, usual: str) -> Path:
    """Return where a kernel file system can be read: its ``usual`` mount point, else a new detached mount
    that no other process sees. OSError if neither is possible."""
    if any(Path(usual).iterdir()):
        return Path(usual)
    mount = syscalls.detached_mount(filesystem, {}, MountAttribute(0))
    return Path(f"/proc/self/fd/{mount}")


def tracefs() -> Path:
    """Return the tracing file system. OSError for users other than root, and on kernels without CONFIG_FTRACE."""
    return _of_kernel("tracefs", "/sys/kernel/tracing")


def debugfs() -> Path:
    """Return the debugging file system. OSError for users other than root, and on kernels without debugfs."""
    return _of_kernel("debugfs", "/sys/kernel/debug")


@contextmanager
def overlay(directory: Path, lower: Sequence[str], *, container: str | None = None) -> Iterator[Path]:
    """Mount the layers ``lower``, the topmost first, and yield the root of the merged tree. Names are relative to
    ``directory``, and have at most 255 bytes together.

    ``container``: the directory of ``UPPER`` and ``WORK``, which are made if they are missing; without it the tree is
    read-only. Another user than root gets a user namespace for the rest of the process, which must have one thread.
    OSError with the reason.
    """
    options: dict[str, str | None] = {"lowerdir": ":".join(lower), **_OVERLAY_OPTIONS}
    if container is not None:
        for option, name in (("upperdir", UPPER), ("workdir", WORK)):
            (directory / container / name).mkdir(parents=True, exist_ok=True)
            options[option] = f"{container}/{name}"
    try:
        if os.geteuid() != 0:
            enter_user_namespace()
            options["userxattr"] = None
        with _inside(directory):
            root = syscalls.detached_mount("overlay", options, _OVERLAY_ATTRIBUTES)
    except OSError as error:
        why = _WHY_NO_OVERLAY.get(error.errno or 0)
        raise OSError(
            error.errno, f"{error.strerror}: {why}" if why else error.strerror, "overlayfs"
        ) from error
    with closed_after(root):
        yield Path(f"/proc/self/fd/{root}")


def try_overlay(directory: Path) -> None:
    """Try in a new directory, which is removed again, what containers need: deleted files are hidden, changed ones are
    copied up. OSError with the reason if that fails."""
    try:
        for name in ("0", "1"):
            (directory / name).mkdir(parents=True)
        for name in ("kept", "deleted"):
            (directory / "0" / name).write_text("0")
        white_out(directory / "1/deleted")
        with overlay(directory, ("1", "0"), container="container") as merged:
            (merged / "kept").write_text("1")
            listed = [path.name for path in merged.iterdir()]
        if listed != ["kept"]:
            reason = "deleted files are still listed: the file system stores no types of files in directories (d_type)"
            raise OSError(errno.EOPNOTSUPP, reason)
        if (directory / "0/kept").read_text() != "0":
            raise OSError(errno.EIO, "a change of the container changed the image")
    finally:
        trees.remove(directory)


def white_out(path: Path) -> None:
    """Make what hides the file of this name in the layers below: a character device 0:0 (overlayfs.rst)."""
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


@contextmanager
def _inside(directory: Path) -> Iterator[None]:
    """Change the working directory: the kernel limits the length of all names together."""
    with opened(".", os.O_PATH) as before:
        os.chdir(directory)
        try:
            yield
        finally:
            os.fchdir(before)
