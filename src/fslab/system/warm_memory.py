"""Memory that is held between runs, and given back to the kernel just before one; and proactive reclaim by DAMON, with
which the page cache loses what a trial read or wrote a minute ago, although memory is free.

In many virtual machines free memory goes back to the host (virtio_balloon, free page reporting). The first write to
such a page then makes the host allocate it again: measured 330 MB/s instead of 1,800. Whether the page cache of a run
gets such pages depends on what ran before, so that buffered writes scatter by a factor. Memory that was held until then
is still in use by the guest, and a CPU takes first what was freed last on it. Pages are reported in blocks of 2 MiB,
from which large folios come too: so huge pages are held where the machine has them. Measured, CPU time in the kernel of
dd of 512 MiB on ext4: 0.82 s without held memory, 0.4 to 1.0 s with small pages, 0.16 to 0.26 s with huge ones. tmpfs
takes small blocks first, so that small pages are held for what it stores (docs/measuring.md). Sources for DAMON:
Documentation/admin-guide/mm/damon/usage.rst (schemes in sysfs) and reclaim.rst (the module damon_reclaim).
"""

import contextlib
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fslab.system import memory, sysfs

_REPORTING = 5  # VIRTIO_BALLOON_F_REPORTING: include/uapi/linux/virtio_balloon.h
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, since Linux 5.14: include/uapi/asm-generic/mman-common.h
_BLOCK_BYTES = 2 << 20  # of a huge page; x86-64, and aarch64 with pages of 4 KiB
SHARE = 4  # of the available memory, at most a quarter is held
US_PER_S = 1_000_000


def is_reported(sys: Path = sysfs.SYS) -> bool:
    """Return whether this kernel gives free memory back to a host."""
    devices = sys.glob("bus/virtio/drivers/virtio_balloon/virtio*/features")
    features = [sysfs.text(device) or "" for device in devices]
    return any(bits[_REPORTING : _REPORTING + 1] == "1" for bits in features)


@dataclass(kw_only=True, slots=True)
class WarmMemory:
    """Memory that is held. The process must not be forked meanwhile with the memory: children do not get it."""

    _held: dict[bool, list[mmap.mmap]] = field(default_factory=lambda: {True: [], False: []})

    @property
    def held_bytes(self) -> int:
        """Bytes that are held now."""
        return sum(map(len, (*self._held[True], *self._held[False])))

    def hold(self, wanted_bytes: int, *, huge: bool = True) -> None:
        """Hold at least ``wanted_bytes`` in whole blocks, or as much as a quarter of the available memory allows.

        ``huge``: in huge pages, for a run that allocates large folios; else in small ones, for tmpfs, which takes pages
        from the kernel's lists of small blocks first. What is held already stays. Does nothing if the kernel cannot do
        it: no run depends on it.
        """
        room = (memory.available_bytes() or 0) // SHARE
        own = self._held[huge]
        more = min(wanted_bytes - sum(map(len, own)) + _BLOCK_BYTES - 1, room) // _BLOCK_BYTES * _BLOCK_BYTES
        if more <= 0:
            return
        held = mmap.mmap(-1, more, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        try:
            held.madvise(mmap.MADV_DONTFORK)
            with contextlib.suppress(OSError):  # a kernel without transparent huge pages
                held.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
            held.madvise(_POPULATE_WRITE)
        except OSError:
            held.close()
        else:
            own.append(held)

    def release(self, cpu: int | None = None) -> int:
        """Give all of it back to the kernel; return how many bytes that were.

        ``cpu``: the CPU that will use it. A CPU gets small pages first that were freed on it (per-CPU page lists,
        mm/page_alloc.c): without it, whoever writes to tmpfs on another CPU gets none of them.
        """
        released = self.held_bytes
        with contextlib.ExitStack() as undo:
            if released and cpu is not None:
                undo.enter_context(_running_on(cpu))
            for own in self._held.values():
                for held in own:
                    undo.callback(held.close)
                own.clear()
        return released


@contextlib.contextmanager
def _running_on(cpu: int) -> Iterator[None]:
    """Run this thread on one CPU, if it is allowed to."""
    allowed = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def eviction_age_s(sys: Path = sysfs.SYS) -> float | None:
    """Return the seconds without access after which a page is evicted; 0 if no page is. None if it is unknown.

    Only root can read it; in a kernel without DAMON no page is evicted.
    """
    threads, module = sys / "kernel/mm/damon/admin/kdamonds", sys / "module/damon_reclaim/parameters"
    for directory, file in ((threads, "nr_kdamonds"), (module, "enabled")):
        if directory.is_dir() and sysfs.text(directory / file) is None:
            return None
    ages = [*_ages_of_schemes(threads), *_age_of_module(module)]
    known = [age for age in ages if age is not None]
    return min(known, default=0.0) if len(known) == len(ages) else None


def _ages_of_schemes(threads: Path) -> Iterator[float | None]:
    """Yield the age of each scheme that evicts pages of physical memory, which includes the page cache."""
    for context in threads.glob("*/contexts/*"):
        aggregation_us = sysfs.number(context / "monitoring_attrs/intervals/aggr_us")
        running = sysfs.text(context.parents[1] / "state") == "on"
        if not running or sysfs.text(context / "operations") != "paddr":
            continue
        for scheme in context.glob("schemes/*"):
            age = sysfs.number(scheme / "access_pattern/age/min")
            if sysfs.text(scheme / "action") == "pageout":
                yield None if age is None or aggregation_us is None else age * aggregation_us / US_PER_S


def _age_of_module(parameters: Path) -> Iterator[float | None]:
    age_us = sysfs.number(parameters / "min_age")
    if sysfs.text(parameters / "enabled") in {"Y", "1"}:
        yield None if age_us is None else age_us / US_PER_S
