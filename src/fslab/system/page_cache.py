"""Drop the page cache (all of it as root, file by file as any user) and fill it."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from fslab.system import files, memory, sysfs, trees, untrusted_files
from fslab.system.files import opened

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
CHUNK_BYTES = 1 << 20
_BLKFLSBUF = 0x1261  # include/uapi/linux/fs.h


def drop_all() -> None:
    """Drop the clean page cache, dentries and inodes of the machine (Documentation/admin-guide/sysctl/vm.rst)."""
    DROP_CACHES.write_text("3")


def drop_inodes() -> None:
    """Drop the unused dentries and inodes of the machine; the page cache of files stays."""
    DROP_CACHES.write_text("2")


def drop_buffers(device: Path) -> None:
    """Write the cached pages of a block device that is not mounted to it, and drop them (ioctl BLKFLSBUF, as
    blockdev(8) does). The kernel does so only when the last process closes the device."""
    with opened(device, os.O_NOFOLLOW) as descriptor:
        fcntl.ioctl(descriptor, _BLKFLSBUF)


def drop_device(device: Path) -> None:
    """Drop the cached pages of a block device as ``drop_buffers`` does. For a loop device, also those of its backing
    file, which exist if the loop device does not bypass the page cache."""
    drop_buffers(device)
    behind = sysfs.text(sysfs.block_directory(device) / "loop/backing_file")
    if behind is not None and Path(behind).is_file():
        with opened(behind, os.O_NOFOLLOW) as descriptor:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def drop_tree(directory: Path) -> None:
    """Drop the clean pages of every regular file below ``directory``: posix_fadvise(2) DONTNEED.

    Works without root. Dentries and inodes stay cached. Symbolic links are not followed.
    """
    for descriptor in _opened_files(directory):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def fill_from(directory: Path) -> None:
    """Read every regular file below ``directory`` once, so that as much of it as fits is cached. Of holes, only as much
    as the machine has memory: a sparse file can be larger than can ever be read.

    Needed for a warm cache: fio, for example, drops the files that it has laid out.
    """
    left_bytes = memory.total_bytes() or 0
    for descriptor in _opened_files(directory):
        at, size = 0, os.fstat(descriptor).st_size
        for start, end in (*files.data_regions(descriptor), (size, size)):
            hole_bytes = min(max(0, start - at), left_bytes)
            left_bytes -= hole_bytes
            _read(descriptor, at, at + hole_bytes)
            _read(descriptor, start, end)
            at = end


def _opened_files(directory: Path) -> Iterator[int]:
    """Yield a descriptor of each regular file of a tree, which is closed afterwards. A server that 'prepare' has
    started can remove or replace files meanwhile: those are left out."""
    for beneath, name in trees.files(directory):
        with contextlib.ExitStack() as undo:
            try:
                descriptor = undo.enter_context(untrusted_files.regular(name, beneath))
            except OSError:
                continue
            yield descriptor


def _read(descriptor: int, at: int, end: int) -> None:
    buffer = bytearray(min(CHUNK_BYTES, end - at))
    while at < end and (read := os.preadv(descriptor, [buffer], at)):
        at += read


def fill_from_device(device: Path, size_bytes: int) -> None:
    """Read the first ``size_bytes`` of a block device. They stay cached only while a process has it open."""
    buffer = bytearray(CHUNK_BYTES)
    with opened(device, os.O_NOFOLLOW) as descriptor:
        while size_bytes > 0 and (read := os.readv(descriptor, [buffer])):
            size_bytes -= read
