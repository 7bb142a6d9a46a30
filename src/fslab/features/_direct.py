"""How direct I/O behaves: which request sizes work, and which of them leave dirty or cached pages."""

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
DIRTY_PAGES = 64  # few, so that a try is short: others make pages dirty meanwhile
FEW_PAGES = DIRTY_PAGES // 2
TIMES_SEEN = 5
PATIENCE_S = 10.0
READ_TRIES = 3
VMSTAT = Path("/proc/vmstat")


def works(descriptor: int, size: int) -> bool:
    """Whether a read and a write of this size work, at an offset aligned to this size only."""
    block = _block(size)
    try:
        os.preadv(descriptor, [block], size)
        return os.pwritev(descriptor, [block], size) == size
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise


def first_clean(descriptor: int, sizes: Sequence[int], block_bytes: int) -> int | None:
    """The smallest size whose writes bypass the page cache; None: none does.

    If whole pages and blocks do not, nothing does. That is asked first: log-structured file systems write a whole
    log for each such write, and more tries would fill the volume.
    """
    whole = next((size for size in sizes if size >= max(syscalls.PAGE_BYTES, block_bytes)), None)
    if whole is not None and _dirties(descriptor, whole):
        return None
    return next((size for size in sizes if not _dirties(descriptor, size)), None)


def _dirties(descriptor: int, size: int) -> bool:
    """Whether writes in such steps make pages dirty: some kernels take any step and go through the cache with it.

    Not what is cached afterwards: they empty it again before they return. The counter is the machine's, and others
    write for seconds on end: one try without dirty pages is a proof, and one with them counts only where there were
    none as long before and after it. Where it is never quiet, the tries are compared with what lies between them.
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
    """Memory that begins with a page. It is freed when it is not referenced: to close it before that is an error, and
    a write that fails holds it in its traceback."""
    return memoryview(mmap.mmap(-1, max(size, syscalls.PAGE_BYTES)))[:size]


def _dirtied(descriptor: int, block: memoryview) -> int:
    """Pages that became dirty while one block went to each page: of the whole machine, so others can only add."""
    before, size = _counter(), len(block)
    for offset in range(0, DIRTY_PAGES * syscalls.PAGE_BYTES, max(size, syscalls.PAGE_BYTES)):
        # Not at a page's beginning where the step is smaller than a page: aligned to the step alone.
        os.pwritev(descriptor, [block], offset + (size if size < syscalls.PAGE_BYTES else 0))
    return _counter() - before


def reads_are_cached(descriptor: int, file: Path) -> bool:
    """Whether what is read stays in the page cache."""
    with mmap.mmap(-1, BYTES) as buffer:
        buffer[:] = bytes(BYTES)  # btrfs reads through the cache into memory that was never touched
        found = []
        for _ in range(READ_TRIES):
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


def _others(seconds: float) -> int:
    """Pages that become dirty meanwhile, by whomever."""
    before = _counter()
    time.sleep(seconds)
    return _counter() - before


def _counter() -> int:
    words = (sysfs.text(VMSTAT) or "").split()
    return int(words[words.index("nr_dirtied") + 1])
