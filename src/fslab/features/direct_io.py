"""Direct I/O: is it possible, in steps of how many bytes, and does it really pass the page cache by?"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

from fslab import features
from fslab.features import Finding, Group, Place
from fslab.system import syscalls, sysfs

STEPS = (512, 1024, 2048, 4096, 8192, 16384, 65536)
BYTES = 4 << 20
PAGES = BYTES // syscalls.PAGE_BYTES
TRIES = 3
VMSTAT = Path("/proc/vmstat")


class DirectIo(features.Feature):
    """Writes and reads at ever larger steps until one is taken, then looks whether pages become dirty or cached."""

    title = "direct I/O, step"
    summary = "O_DIRECT: the smallest step, and whether the page cache is really passed by"
    group = Group.CALLS

    def probe(self, place: Place) -> Finding:
        """What was tried; what statx(2) says of it stands beside it."""
        file = place.directory / "file"
        file.write_bytes(os.urandom(BYTES))
        place.remount()
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_DIRECT)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.EOPNOTSUPP}:
                return features.no(error.strerror)
            raise
        try:
            cached = _reads_are_cached(
                descriptor, file
            )  # first: pages that writes leave dirty are read from the cache
            taken = [size for size in STEPS if _works(descriptor, size)]
            step = _first_clean(descriptor, taken, os.fstatvfs(descriptor).f_bsize)
        finally:
            os.close(descriptor)
        if not taken:
            return features.no(f"taken by open(2), but not in steps of up to {STEPS[-1]} bytes")
        if step is None and cached:
            return features.no("taken, but reads and writes go through the page cache")
        if step is None:
            return features.value("reads only", detail="writes go through the page cache")
        if cached:
            return features.value("writes only", detail="reads go through the page cache")
        return features.value(step, "B", detail=_said(file))


def _works(descriptor: int, size: int) -> bool:
    block = _block(size)
    try:
        os.preadv(descriptor, [block], size)
        return os.pwritev(descriptor, [block], size) == size
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise


def _first_clean(descriptor: int, sizes: Sequence[int], block_bytes: int) -> int | None:
    """The smallest step whose writes pass the cache by. If one of whole pages and blocks does not, no larger one does:
    to try on would only fill a log-structured file system."""
    for size in sizes:
        if not _dirties(descriptor, size):
            return size
        if size >= max(syscalls.PAGE_BYTES, block_bytes):
            break
    return None


def _dirties(descriptor: int, size: int) -> bool:
    """Whether writes in such steps make pages dirty: some kernels take any step and go through the cache with it.

    Not what is cached afterwards: they empty it again before they return.
    """
    block = _block(size)
    return all(_dirtied(descriptor, block) > PAGES // 2 for _ in range(TRIES))


def _block(size: int) -> memoryview:
    """Memory that begins with a page. It goes when nobody holds it: to close it while one does is an error, and
    a write that fails holds it in its traceback."""
    return memoryview(mmap.mmap(-1, max(size, syscalls.PAGE_BYTES)))[:size]


def _dirtied(descriptor: int, block: memoryview) -> int:
    """Pages that became dirty while one block went to each page: of the whole machine, so others can only add."""
    before, size = _counter(), len(block)
    for offset in range(0, BYTES, max(size, syscalls.PAGE_BYTES)):
        # Not at a page's beginning where the step is smaller than a page: aligned to the step alone.
        os.pwritev(descriptor, [block], offset + (size if size < syscalls.PAGE_BYTES else 0))
    return _counter() - before


def _reads_are_cached(descriptor: int, file: Path) -> bool:
    with mmap.mmap(-1, BYTES) as buffer:
        buffer[:] = bytes(BYTES)  # btrfs reads through the cache into memory that was never touched
        found = []
        for _ in range(TRIES):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            before = syscalls.cached_pages(file)
            try:
                os.preadv(descriptor, [buffer], 0)
            except OSError as error:
                if error.errno == errno.EINVAL:
                    return False  # not even this: the steps below tell
                raise
            found.append(syscalls.cached_pages(file) - before)
    return min(found) > PAGES // 2


def _counter() -> int:
    words = (sysfs.text(VMSTAT) or "").split()
    return int(words[words.index("nr_dirtied") + 1])


def _said(file: Path) -> str | None:
    said = syscalls.direct_alignment(file)
    if said is None:
        return None
    return f"statx: memory {said.memory_bytes}, offset {said.offset_bytes}"
