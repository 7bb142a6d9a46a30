"""Namespaces of this process: of users, for rights that another user than root lacks, and of the network.

What is mounted, connected or started in them is not its business.
"""

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from fslab.system import syscalls
from fslab.system.files import opened
from fslab.system.syscalls import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUSER

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1  # netdevice(7)


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
