"""A FUSE file system that says what a test wants about its root directory. For root only."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# include/uapi/linux/fuse.h
_HEADER, _ANSWER = struct.Struct("=IIQQIIII"), struct.Struct("=IiQ")
GETATTR, _STATFS, _GETXATTR, _INIT, _ACCESS = 3, 17, 22, 26, 34
_FORCE, _DETACH = 1, 2
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def mounted(target: Path, *, of: int, says: int | None, source: str = "user_id=0") -> Iterator[list[int]]:
    """Mount it as user ``of``, who names its ``source``, as fusermount(1) does with ``allow_other``. It says that its
    directory is ``says``'s; None: it reads what it is asked, and does not answer, until it is unmounted. Yields the
    operations that it was asked for, to which each new one is added."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id={of},group_id={of},allow_other"
    if _libc.mount(source.encode(), os.fsencode(target), b"fuse.test", 0, options.encode()) < 0:
        error = ctypes.get_errno()
        os.close(device)
        raise OSError(error, os.strerror(error), str(target))
    asked: list[int] = []
    server = threading.Thread(target=_serve, args=(device, says, asked), daemon=True)
    server.start()
    try:
        yield asked
    finally:
        _libc.umount2(os.fsencode(target), _FORCE | _DETACH)
        server.join()
        os.close(device)


def _serve(device: int, owner: int | None, asked: list[int]) -> None:
    attributes = struct.pack("=9I", 0, 0, 0, stat.S_IFDIR | 0o755, 2, owner or 0, owner or 0, 0, 4096)
    answers = {
        _INIT: struct.pack("=IIIIHHII32x", 7, 31, 0, 0, 1, 1, 4096, 1).ljust(64, b"\0"),
        GETATTR: struct.pack("=QII6Q", 0, 0, 0, 1, 0, 0, 0, 0, 0) + attributes + bytes(4),
        _STATFS: bytes(80),
    }
    with contextlib.suppress(OSError):  # ENODEV: it is unmounted
        while True:
            _, operation, unique, *_ = _HEADER.unpack_from(os.read(device, 1 << 17))
            asked.append(operation)
            if owner is None and operation != _INIT:
                continue
            data = answers.get(operation)
            size = _ANSWER.size + len(data or b"")
            refusals = {_GETXATTR: errno.ENODATA, _ACCESS: errno.ENOSYS}
            error = 0 if data else refusals.get(operation, errno.ENOENT)
            os.write(device, _ANSWER.pack(size, -error, unique) + (data or b""))
