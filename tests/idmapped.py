"""An idmapped mount (mount_setattr(2)) of a directory, in which files of one user have another owner. For root only."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.limits import wait_for

# include/uapi/linux/mount.h, fcntl.h; the numbers are the same on all machines
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE, _CLOEXEC, _AT_EMPTY_PATH, _FROM_EMPTY, _IDMAP = 1, os.O_CLOEXEC, 0x1000, 4, 0x100000
_AT_FDCWD, _DETACH = -100, 2
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def mounted(source: Path, target: Path, *, stored: int, shown: int) -> Iterator[None]:
    """Mount ``source`` on ``target``, where what belongs to user ``stored`` belongs to ``shown``. OSError if the kernel
    or the file system cannot."""
    own = Path("/proc/self/ns/user").readlink()
    holder = subprocess.Popen(["unshare", "--user", "sleep", "infinity"])
    try:
        other = Path(f"/proc/{holder.pid}/ns/user")
        wait_for(lambda: other.readlink() != own)
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{holder.pid}/{kind}").write_text(f"{stored} {shown} 1\n")
        namespace = os.open(other, os.O_RDONLY)
    finally:
        holder.kill()
        holder.wait()
    tree = _checked(_libc.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(source), _CLONE | _CLOEXEC))
    try:
        attributes = struct.pack("=4Q", _IDMAP, 0, 0, namespace)
        _checked(_libc.syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, attributes, len(attributes)))
        _checked(_libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _FROM_EMPTY))
    finally:
        os.close(tree)
        os.close(namespace)
    try:
        yield
    finally:
        _libc.umount2(os.fsencode(target), _DETACH)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
