"""Direct I/O: is it possible, in steps of how many bytes, and does it really pass the page cache by?"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

from fslab import features
from fslab.features import Finding, Group, Place
from fslab.system import syscalls, sysfs

STEPS = (512, 1024, 2048, 4096, 8192, 16384, 65536)
BYTES = 4 << 20
PAGES = BYTES // syscalls.PAGE_BYTES
TRIES = 5
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
            step = next((size for size in STEPS if _works(descriptor, size)), None)
        finally:
            os.close(descriptor)
        if step is None:
            return features.no(f"taken by open(2), but not in steps of up to {STEPS[-1]} bytes")
        through = _cached(file)
        if len(through) == 2:
            return features.no("taken, but reads and writes go through the page cache")
        if through:
            (really,) = {"reads", "writes"} - through
            return features.value(f"{really} only", detail=f"{', '.join(through)} go through the page cache")
        return features.value(step, "B", detail=_said(file))


def _works(descriptor: int, size: int) -> bool:
    with mmap.mmap(-1, BYTES) as buffer:
        try:
            os.preadv(descriptor, [memoryview(buffer)[:size]], size)
            return os.pwritev(descriptor, [memoryview(buffer)[:size]], size) == size
        except OSError as error:
            if error.errno == errno.EINVAL:
                return False
            raise


def _cached(file: Path) -> set[str]:
    """Which of "reads" and "writes" go through the page cache."""
    descriptor = os.open(file, os.O_RDWR | os.O_DIRECT)
    try:
        with mmap.mmap(-1, BYTES) as buffer:
            writes = min(_dirtied(descriptor, buffer) for _ in range(TRIES)) > PAGES // 2
            os.fsync(descriptor)  # only clean pages can be dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            before = syscalls.cached_pages(file)
            os.preadv(descriptor, [buffer], 0)
    finally:
        os.close(descriptor)
    reads = syscalls.cached_pages(file) - before > PAGES // 2
    return {name for name, so in (("writes", writes), ("reads", reads)) if so}


def _dirtied(descriptor: int, buffer: mmap.mmap) -> int:
    """Pages that became dirty during one write, of the whole machine: others can only add to it.

    Not what is cached afterwards: kernels that fall back on the cache empty it again before they return.
    """
    before = _counter()
    os.pwritev(descriptor, [buffer], 0)
    return _counter() - before


def _counter() -> int:
    words = (sysfs.text(VMSTAT) or "").split()
    return int(words[words.index("nr_dirtied") + 1])


def _said(file: Path) -> str | None:
    said = syscalls.direct_alignment(file)
    if said is None:
        return None
    return f"statx: memory {said.memory_bytes}, offset {said.offset_bytes}"
