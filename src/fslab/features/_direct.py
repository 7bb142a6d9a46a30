"""Tests direct I/O: which request sizes work, and which of them leave dirty or cached pages."""

import errno
import mmap
import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from fslab.system import syscalls, sysfs

BYTES = 4 << 20
PAGES = BYTES // syscalls.PAGE_BYTES
DIRTY_PAGES = 64  # few, so that a try is short: other processes dirty pages at the same time
FEW_PAGES = DIRTY_PAGES // 2
TIMES_SEEN = 5
PATIENCE_S = 10.0
READ_TRIES = 3
VMSTAT = Path("/proc/vmstat")


def works(descriptor: int, size: int) -> bool:
    """Return whether a read and a write of this size work, at an offset aligned only to this size."""
    block = _block(size)
    try:
        os.preadv(descriptor, [block], size)
        return os.pwritev(descriptor, [block], size) == size
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise


def first_clean(descriptor: int, sizes: Sequence[int], block_bytes: int) -> int | None:
    """Return the smallest size whose writes bypass the page cache; None if there is no such size.

    If writes of whole pages and blocks do not bypass it, smaller ones do not either. Whole pages are tested first,
    because log-structured file systems write a whole log for each such write, and more tries would fill the volume.
    """
    whole = next((size for size in sizes if size >= max(syscalls.PAGE_BYTES, block_bytes)), None)
    if whole is not None and _dirties(descriptor, whole):
        return None
    return next((size for size in sizes if not _dirties(descriptor, size)), None)


def _dirties(descriptor: int, size: int) -> bool:
    """Return whether writes of this size dirty pages: some kernels accept any size, but write through the page cache.

    Cached pages are not evidence, because these kernels drop them before the call returns. The counter of dirtied pages
    is that of the whole machine, and other processes can write for seconds. One try without dirtied pages is a proof. A
    try with dirtied pages counts only if there were few of them in equally long periods before and after it. If the
    machine is never quiet, the median of the tries is compared with the periods between them.
    """
    block, end = _block(size), time.monotonic() + PATIENCE_S
    seen, differences, after = 0, list[int](), _others(0.0)
    while seen < TIMES_SEEN:
        begun = time.monotonic()
        ours = _dirtied(descriptor, block)
        if ours <= FEW_PAGES:
            return False
        before, after = after, _others(time.monotonic() - begun)
        seen += max(before, after) <= FEW_PAGES
        differences.append(ours - max(before, after))
        if time.monotonic() > end:
            return median(differences) > FEW_PAGES
    return True


def _block(size: int) -> memoryview:
    """Return page-aligned memory. It is freed when its last reference is gone. Closing it earlier is an error, and the
    traceback of a failed write holds a reference."""
    return memoryview(mmap.mmap(-1, max(size, syscalls.PAGE_BYTES)))[:size]


def _dirtied(descriptor: int, block: memoryview) -> int:
    """Return the number of pages that became dirty while one block was written to each page. The counter is that of the
    whole machine, so other processes can only increase it."""
    before, size = _counter(), len(block)
    for offset in range(0, DIRTY_PAGES * syscalls.PAGE_BYTES, max(size, syscalls.PAGE_BYTES)):
        # If the size is smaller than a page, the offset is aligned only to the size, not to a page.
        os.pwritev(descriptor, [block], offset + (size if size < syscalls.PAGE_BYTES else 0))
    return _counter() - before


def reads_are_cached(descriptor: int, file: Path) -> bool:
    """Return whether data stays in the page cache after direct reads."""
    with mmap.mmap(-1, BYTES) as buffer:
        buffer[:] = bytes(BYTES)  # btrfs reads through the cache if the memory was never written to
        found = []
        for _ in range(READ_TRIES):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            before = syscalls.cached_pages(file)
            try:
                os.preadv(descriptor, [buffer], 0)
            except OSError as error:
                if error.errno == errno.EINVAL:
                    return False  # not even this size works; works() then reports it
                raise
            found.append(syscalls.cached_pages(file) - before)
    return min(found) > PAGES // 2


def _others(seconds: float) -> int:
    """Return the number of pages that become dirty on the machine within ``seconds``."""
    before = _counter()
    time.sleep(seconds)
    return _counter() - before


def _counter() -> int:
    words = (sysfs.text(VMSTAT) or "").split()
    return int(words[words.index("nr_dirtied") + 1])
