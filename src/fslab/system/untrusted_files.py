"""Files in directories that others can write to: a tool in its scratch directory, a guest in its shared directory.
``trees`` removes such directories.

A link would lead to another file, a pipe would block, an endless file would take all memory. So this module writes only
new files, and reads only regular files, up to a limit.
"""

import errno
import os
import stat
import struct
from contextlib import AbstractContextManager
from pathlib import Path

from fslab.system.files import closed_after, named, opened

_JOURNAL_END = struct.Struct(">II8s")  # of one that names another file: length of the name, checksum, magic
_MAGIC = bytes.fromhex("d9d505f920a163d7")  # sqlite.org/fileformat2.html, "The Rollback Journal"


def write_new(path: Path, content: bytes) -> None:
    """Write a file that does not exist yet. OSError with its name: EEXIST if anything has that name, even a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with named(path), os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def read(path: Path | str, *, limit_bytes: int, beneath: int | None = None) -> bytes:
    """Return the content of a regular file. OSError for anything else, and for a file above the limit (EFBIG).

    ``beneath``: the descriptor of a directory that ``path`` is relative to.
    """
    with regular(path, beneath) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > limit_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return read_at(descriptor, 0, size)


def read_at(descriptor: int, offset: int, count: int) -> bytes:
    """Return ``count`` bytes from ``offset``; fewer if the file ends."""
    parts = []
    while count > 0 and (data := os.pread(descriptor, min(count, 1 << 20), offset)):
        parts.append(data)
        offset, count = offset + len(data), count - len(data)
    return b"".join(parts)


def regular(path: Path | str, beneath: int | None = None) -> AbstractContextManager[int]:
    """Yield a descriptor as ``open_regular`` returns it, which is closed at the end of the block."""
    return closed_after(open_regular(path, beneath))


def open_regular(path: Path | str, beneath: int | None = None) -> int:
    """Return a descriptor of a regular file, for reading. OSError for a link, a pipe or a device.

    ``beneath`` as for ``read``; OSError also for a path that leads out of that directory.
    """
    if beneath is not None:
        return _open_beneath(str(path).split("/"), beneath)
    return _open_regular(path, None)


def _open_beneath(names: list[str], directory: int) -> int:
    """Open one directory after the other, so that no link is followed."""
    if {"", ".", ".."} & set(names):
        raise OSError(errno.EXDEV, "leads out of its directory", "/".join(names))
    if len(names) == 1:
        return _open_regular(names[0], directory)
    flags = os.O_DIRECTORY | os.O_NOFOLLOW
    with opened(names[0], flags, dir_fd=directory) as inner:
        return _open_beneath(names[1:], inner)


def _open_regular(path: Path | str, beneath: int | None) -> int:
    # O_NONBLOCK: without it, opening a pipe that has no writer blocks.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, dir_fd=beneath)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return descriptor


def journal_names_another_file(journal: Path) -> bool:
    """Return whether a rollback journal names a super-journal (sqlite.org/atomiccommit.html, "Multi-file Commit").

    SQLite deletes that file when it has rolled back.
    """
    if not journal.is_file():
        return False
    with journal.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _JOURNAL_END.size))
        end = file.read()
    if len(end) < _JOURNAL_END.size:
        return False
    length, _, magic = _JOURNAL_END.unpack(end)
    return bool(magic == _MAGIC and length > 0)
