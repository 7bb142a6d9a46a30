"""Locks of the campaigns of an SQLite store, one byte each of a file beside it: whoever uses the store sees them,
wherever fslab keeps its own state.

They are locks of the open file (fcntl(2), F_OFD_SETLK): the kernel releases them when the process ends.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from fslab.errors import BusyError, StoreError
from fslab.store.database import check_closed
from fslab.system import files

_FLOCK = struct.Struct("@hhqqi4x")  # struct flock: type, whence, start, length, process
_TAKEN = frozenset({errno.EAGAIN, errno.EACCES})


def path_of(database: str) -> Path:
    """Return the file of the locks: where the database really is, so that a link to it has the same ones."""
    real = Path(os.path.realpath(database))
    return real.with_name(f"{real.name}-running")


@contextlib.contextmanager
def held(database: str, campaign: str) -> Iterator[None]:
    """Hold the lock of a campaign. BusyError if another process holds it, StoreError if its file cannot be used,
    UnsafeError if another user can put files beside the store."""
    check_closed(Path(database))
    path = path_of(database)
    with files.closed_after(_opened(path)) as descriptor:
        with contextlib.suppress(OSError):  # it may be another user's
            # Who can write to the store shares its locks. Who can only read it could hold them all.
            writers = Path(database).stat().st_mode & 0o222
            os.fchmod(descriptor, writers | writers << 1)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _lock(campaign))
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            raise BusyError(
                f"campaign {campaign} is running in another process",
                where=str(path),
                hint="wait until it ends, or stop it with Ctrl-C",
            ) from error
        yield


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"cannot be opened: {error.strerror}",
            where=str(path),
            hint="fslab makes this file: permit it there, and remove another of its name",
        ) from error


def is_held(database: str, campaign: str) -> bool:
    """Return whether a process holds the lock of a campaign, without taking it."""
    try:
        with files.opened(path_of(database), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor:
            found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _lock(campaign))
    except OSError:  # no such file, or another user's
        return False
    return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)


def _lock(campaign: str) -> bytes:
    byte = int.from_bytes(hashlib.sha256(campaign.encode()).digest()[:7], "big")
    return _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
