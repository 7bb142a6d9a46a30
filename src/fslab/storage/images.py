"""Create image files, preallocated and fully written, or sparse, and copy them. Must not overwrite an existing file.

On a sparse or only fallocated image, first writes include the allocation in the backing file system.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType

from fslab.errors import FULL_DISK, NoSpaceError, ToolFailedError, ToolOutputError, UnsafeError, UsageError
from fslab.storage import Growth, Workspace, undone_later
from fslab.system import files, memory, mounts, path_owners
from fslab.system.files import opened
from fslab.system.signals import Teardown
from fslab.units import format_size

BLOCK_BYTES = 1 << 20
RESERVE_BYTES = 64 << 20
RESERVE_SHARE = 8  # on a small file system, such as one in a guest's memory, reserve only 1/8 of its size
RESERVE_FILES = 1000
GROWTH_SLACK = (
    64  # an image may have 1/64 more than its room: its file system counts what it needs to find its blocks
)
MEMORY = "memory"
_OF_FULL_DISK = (OSError, NoSpaceError, ToolFailedError, ToolOutputError)
ONLY_YOURS = "choose a 'path' for the medium that only you can write to"


def existing_directory(written: str) -> Path:
    """Return the directory that a study names, for files of fslab. UsageError unless it exists and is writable.
    UnsafeError if root must not write there."""
    directory = Path(written).expanduser()
    mounts.check_servers([directory])
    if not directory.is_dir():
        raise UsageError("is not a directory", where=written, hint="create it, or choose another 'path'")
    if not os.access(directory, os.W_OK | os.X_OK):  # for root: read-only or immutable
        raise UsageError(
            "is not writable for you", where=written, hint="choose a directory that you can write to"
        )
    path_owners.check_closed(directory)
    return directory


def check_room(directory: Path, size_bytes: int) -> None:
    """Raise NoSpaceError unless ``directory``, or its nearest existing parent, has this much free space.

    A reserve of space and of inodes must be left over.
    """
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    room = os.statvfs(existing)
    free = room.f_bavail * room.f_frsize
    if not room.f_blocks:  # as proc and cgroup2, of which the kernel makes all files
        raise NoSpaceError(
            "is on a file system that has no room for files",
            where=str(existing),
            hint="choose another 'path' for the medium",
        )
    if room.f_files and room.f_favail < RESERVE_FILES:  # some file systems do not count inodes
        raise NoSpaceError(
            f"only {room.f_favail} free inodes",
            where=str(existing),
            hint="choose fewer files, or another 'path' for the medium",
        )
    reserve = min(RESERVE_BYTES, room.f_blocks * room.f_frsize // RESERVE_SHARE)
    if free < size_bytes + reserve:
        raise NoSpaceError(
            f"needs {format_size(size_bytes + reserve)}, but only {format_size(free)} are free",
            where=str(existing),
            hint="choose smaller sizes, or another 'path' for the medium",
        )


def check_growth(growth: Growth) -> None:
    """Raise NoSpaceError if a sparse image has outgrown its room, or its directory has only the reserve left."""
    try:
        allocated = growth.image.stat().st_blocks * 512
    except FileNotFoundError as error:
        raise UnsafeError(
            "another program removed the image", where=str(growth.image), hint=ONLY_YOURS
        ) from error
    if allocated > growth.room_bytes + growth.room_bytes // GROWTH_SLACK:
        raise NoSpaceError(
            f"the image has grown to {format_size(allocated)}, and the medium has room for "
            f"{format_size(growth.room_bytes)}",
            where=str(growth.image),
            hint="give the medium more 'room', or choose smaller files",
        )
    check_room(growth.image.parent, 0)


def tell_when_full(undo: ExitStack, check: Callable[[], None], *, if_failed: bool = False) -> None:
    """Call ``check`` when the stack is taken down: its NoSpaceError takes the place of the error that a program or the
    file system reports, such as an I/O error, but not of an interruption. ``if_failed``: only if there is one."""

    def ended(
        kind: type[BaseException] | None,
        error: BaseException | None,  # noqa: ARG001
        trace: TracebackType | None,  # noqa: ARG001
    ) -> None:
        ask_anyway = kind is None and not if_failed
        if ask_anyway or (kind is not None and issubclass(kind, _OF_FULL_DISK)):
            check()

    undo.push(ended)


def check_memory(size_bytes: int) -> None:
    """Raise NoSpaceError if ``size_bytes`` exceeds three quarters of the available memory."""
    available = memory.available_bytes()
    if available is None:
        return
    if size_bytes > available * 3 // 4:
        raise NoSpaceError(
            f"needs {format_size(size_bytes)} of memory, but only 3/4 of the available {format_size(available)} "
            "may be used",
            where="memory",
            hint="choose smaller sizes or less guest_memory, or a 'loop' medium",
        )


def create(path: Path, size_bytes: int, workspace: Workspace, *, sparse: bool = False) -> tuple[int, int]:
    """Write a new image of ``size_bytes`` and flush it. It is journalled first, and removed when the campaign ends, or
    at once if it cannot be written (NoSpaceError, OSError).

    A ``sparse`` image is not written: the file system of the directory allocates a region at its first write.

    Returns its device and inode number.
    """
    if os.path.lexists(path):  # before the journal: an entry means that the file is fslab's
        raise UnsafeError("the file exists already; fslab does not overwrite it", where=str(path))
    with Teardown() as undo:  # a file that cannot be filled goes at once: the next trial creates it again
        remove = partial(path.unlink, missing_ok=True)
        entry = undone_later(workspace.journal, "image", path, undo, remove)
        try:
            file = opened(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW)
        except OSError:  # another program has just created the file: fslab must not remove it
            undo.pop_all()
            workspace.journal.undone(entry)
            raise
        try:
            with file as descriptor:
                if sparse:
                    os.ftruncate(descriptor, size_bytes)
                else:
                    _fill(descriptor, size_bytes)
                made = os.fstat(descriptor)
        except OSError as error:
            if error.errno in FULL_DISK or error.errno == errno.EFBIG:
                raise NoSpaceError(
                    f"no space for an image of {format_size(size_bytes)} ({error.strerror})",
                    where=str(path),
                    hint="choose a smaller 'size' or another 'path' for the medium, or raise the limit (ulimit -f)",
                ) from error
            raise
        workspace.exit.push(undo.pop_all())
    return made.st_dev, made.st_ino


def empty(path: Path, workspace: Workspace) -> None:
    """Remove all contents of an image: it becomes sparse, and keeps its size. UnsafeError as for ``copy``."""
    with _opened(path, workspace) as descriptor:
        _resize(descriptor, os.fstat(descriptor).st_size)


def copy(source: Path, target: Path, workspace: Workspace) -> None:
    """Make one image equal to another one, with the same holes. UnsafeError if one is not the file that fslab created.

    No extents are shared (reflink): the first write to a shared extent allocates, and that would be measured.
    Both are written to their disk at once: what is left of it in memory would be written during a measured run, or be
    read from there.
    """
    with _opened(source, workspace) as old, _opened(target, workspace) as new:
        _resize(new, os.fstat(old).st_size)
        for start, end in files.data_regions(old):
            at = os.lseek(new, start, os.SEEK_SET)
            while at < end:
                if not (moved := os.sendfile(new, old, at, end - at)):
                    raise OSError(errno.EIO, "became shorter", str(source))
                at += moved
        _settle(old)
        _settle(new)


@contextmanager
def _opened(path: Path, workspace: Workspace) -> Iterator[int]:
    with opened(path, os.O_RDWR | os.O_NOFOLLOW) as descriptor:
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != workspace.media.get(str(path)):
            raise UnsafeError("another program replaced the image", where=str(path), hint=ONLY_YOURS)
        yield descriptor


def _resize(descriptor: int, size_bytes: int) -> None:
    os.ftruncate(descriptor, 0)
    os.ftruncate(descriptor, size_bytes)


def _fill(descriptor: int, size_bytes: int) -> None:
    # Random bytes, not zeros: backing storage that drops zeros or compresses would keep a hole.
    block = os.urandom(BLOCK_BYTES)
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.EINVAL}:
            raise
    for offset in range(0, size_bytes, BLOCK_BYTES):
        files.write_all(descriptor, block[: size_bytes - offset], offset)
    _settle(descriptor)


def _settle(descriptor: int) -> None:
    """Write a file to its disk, and drop it from the page cache."""
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
