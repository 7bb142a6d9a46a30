"""Brings the page cache of a trial to its declared state, and holds memory for its run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fslab import workloads
from fslab.cell import Cache, Cell
from fslab.storage.mounted_stack import Stack
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import page_cache, tools, warm_memory

MOST_BYTES = 4 << 30


def prepare(
    wanted: Cache, up: Stack, workload: workloads.ParsedWorkload[Any], keep: Callable[[], None] | None
) -> bool:
    """Flush what preparing left, and bring the page cache to the declared state. Returns whether that succeeded.

    A file system of ours is unmounted, so nothing of it stays cached. Other caches do not matter. ``keep`` is called
    while it is unmounted.
    """
    up.flush()
    if wanted is Cache.WARM:
        up.fill_cache(workload.space_bytes())
        up.flush()  # the access times
        return True
    if up.unmount():
        up.drop_caches()
        if keep is not None:
            keep()
        up.mount()
        return True
    try:
        page_cache.drop_all()
    except PermissionError:
        page_cache.drop_tree(up.work)
        return False
    for tool in workload.tools():
        tools.page_in(tool)  # dropping all caches dropped the tool as well
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMemory:
    """How much memory to hold for a run: for the page cache, and for disks in memory."""

    cached_bytes: int = 0
    disk_bytes: int = 0

    def hold(self, held: warm_memory.WarmMemory) -> None:
        """Hold this much. What is held already stays."""
        held.hold(self.cached_bytes)
        held.hold(self.disk_bytes, huge=False)


def needed(cell: Cell, *, in_guest: bool = False) -> RunMemory:
    """Return how much memory to hold for a run. None is needed where free memory stays in use.

    ``in_guest``: for a run in a guest, whose page cache is not memory of this machine. A quarter more than the files,
    because other allocations take from what is released, too.
    """
    if not warm_memory.is_reported():
        return RunMemory()
    workload, parsed = workloads.parsed(cell.workload), parsed_stack(cell.stack)
    cached = not in_guest and not workload.traits().direct
    takes = parsed.medium.takes_memory(parsed.medium_options, in_guest=in_guest)
    return RunMemory(
        cached_bytes=min(cached * workload.space_bytes() * 5 // 4, MOST_BYTES),
        disk_bytes=min(takes * workload.written_bytes() * 5 // 4, MOST_BYTES),
    )
