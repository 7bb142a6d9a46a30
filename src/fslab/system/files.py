"""Opens files as descriptors closed at the end of a block, locks them, finds their data, makes directories of ours."""

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from mmap import mmap
from pathlib import Path

from fslab.errors import UnsafeError
from fslab.system import path_owners, signals, waiting

PIECE_BYTES = 1 << 20
_POLL_S = 0.01
_DESCRIPTOR = re.compile(r"/dev/(stdin|stdout|stderr|fd/\d+)|/proc/(self|thread-self|\d+)(/task/\d+)?/fd/\d+")


@contextmanager
def closed_after(descriptor: int) -> Iterator[int]:
    """Yield a descriptor, and close it at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def opened(
    path: Path | str, flags: int = os.O_RDONLY, *, dir_fd: int | None = None
) -> AbstractContextManager[int]:
    """Yield a descriptor of a file: open(2) with O_CLOEXEC; a new file has mode 0600."""
    return closed_after(os.open(path, flags | os.O_CLOEXEC, 0o600, dir_fd=dir_fd))


def is_descriptor(path: Path) -> bool:
    """Return whether a path is the name of an open descriptor. Not all below /dev: anybody can make files in
    /dev/shm."""
    return _DESCRIPTOR.fullmatch(str(path)) is not None


def memory_file(name: str) -> AbstractContextManager[int]:
    """Yield a descriptor of a new file in memory: memfd_create(2)."""
    return closed_after(os.memfd_create(name))


def locked(descriptor: int, kind: int = fcntl.LOCK_EX, *, wait_s: float = 0.0) -> bool:
    """Lock an open file by flock(2). Return False if another program keeps it locked for longer than ``wait_s``."""

    def taken() -> bool:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    return waiting.until(taken, wait_s, _POLL_S)


@contextmanager
def named(path: Path | str) -> Iterator[None]:
    """Add the file's name to an OSError of write(2), which knows only the descriptor."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def held(path: Path | str, undo: ExitStack, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a file, as ``opened`` does, that ``undo`` closes. No signal comes in between: what nobody
    closes keeps a device or a mount in use until the process ends."""
    with signals.shielded():
        return undo.enter_context(opened(path, flags))


def make_directories(path: Path, mode: int = 0o755) -> None:
    """Make a directory of this mode and those above it that are missing. Others cannot write to them, whatever the
    umask. UnsafeError if another user made one of them first (``path_owners.check_closed``)."""
    for each in (*reversed(path.parents), path):
        if not each.is_dir():
            each.mkdir(mode=mode if each == path else 0o755, exist_ok=True)
    path_owners.check_closed(path)


def own_directory(path: Path, mode: int) -> None:
    """Make a directory of this mode, or use one that is already there. UnsafeError unless it is our user's, with this
    mode: another user could have made it, or use it for something else. Never changes one that it did not make."""
    make_directories(path.parent)
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        made = False
    else:
        made = True
    try:
        with opened(path, os.O_DIRECTORY | os.O_NOFOLLOW) as descriptor:
            if made and os.fstat(descriptor).st_uid == os.geteuid():
                os.fchmod(descriptor, mode)  # whatever the umask
            found = os.fstat(descriptor)
    except OSError as error:
        raise _not_ours(path, mode) from error
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != mode:
        raise _not_ours(path, mode)


def _not_ours(path: Path, mode: int) -> UnsafeError:
    return UnsafeError(
        f"not used: it is not a directory of this user with mode {mode:04o}",
        where=str(path),
        hint="remove it, or let FSLAB_RUNTIME_DIR name another directory to make it in",
    )


def make_newer(path: Path, than_ns: int) -> None:
    """Set the time of the file's contents to now, as soon as that is later than ``than_ns``. File systems keep times in
    steps: ext2 with inodes of 128 bytes of 1 s, vfat of 2 s."""
    while path.stat().st_mtime_ns <= than_ns:
        time.sleep(_POLL_S)
        os.utime(path)


def data_regions(descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each region that is not a hole."""
    end = 0
    while True:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left, or nothing
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


def write_all(descriptor: int, data: bytes | mmap, at: int | None = None) -> None:
    """Write all of the data, to this offset or to the file's position. write(2) to a disk that gets full writes a part
    of it, and only the next one says why."""
    done = 0
    with memoryview(data) as whole:  # released also after an error: an mmap with a view cannot be closed
        while done < len(whole):
            if at is None:
                done += os.write(descriptor, whole[done:])
            else:
                done += os.pwrite(descriptor, whole[done:], at + done)


def copy_data(source: int, path: Path) -> None:
    """Copy an open file to a new file, without holes and zeros. OSError with its name, such as if it exists; half a
    copy is removed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with named(path), closed_after(os.open(path, flags, 0o600)) as target:
        try:
            os.ftruncate(target, os.fstat(source).st_size)
            for at, size in data_pieces(source):
                piece = os.pread(source, size, at)
                if piece.strip(b"\0"):
                    write_all(target, piece, at)
        except BaseException:
            path.unlink()
            raise


def data_pieces(descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets and sizes of the data in bytes, in pieces of at most 1 MiB."""
    for start, end in data_regions(descriptor):
        for at in range(start, end, PIECE_BYTES):
            yield at, min(PIECE_BYTES, end - at)
