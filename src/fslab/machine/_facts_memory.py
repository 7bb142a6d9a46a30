"""Facts of the memory: how much, and how the kernel writes back, swaps and uses large pages. Reads only."""

from __future__ import annotations

from fslab.machine._fact import Fact, Group, Value, flag_of, memory_of, number_of, selected_of

HUGE = "sys/kernel/mm/transparent_hugepage"
# Of sysctl/vm.rst: those that decide when and how much dirty data is written back, and what is evicted first.
VM = (
    "swappiness", "dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes",
    "dirty_expire_centisecs", "dirty_writeback_centisecs", "vfs_cache_pressure",
)  # fmt: skip


def gibibytes(value: int) -> Value:
    """What the firmware takes may change a little from boot to boot."""
    return f"{round(value / (1 << 30))} GiB" if value >= 1 << 30 else value


FACTS = (
    Fact(name="memory_bytes", group=Group.MEMORY, read=memory_of("MemTotal"), canonical=gibibytes),
    Fact(name="swap_bytes", group=Group.MEMORY, read=memory_of("SwapTotal")),
    Fact(
        name="transparent_hugepage", group=Group.SETTINGS, read=selected_of(f"{HUGE}/enabled"),
        tuned_by="transparent_hugepage",
    ),
    Fact(name="transparent_hugepage_defrag", group=Group.SETTINGS, read=selected_of(f"{HUGE}/defrag")),
    Fact(name="zswap", group=Group.SETTINGS, read=flag_of("sys/module/zswap/parameters/enabled")),
    *(
        Fact(name=name, group=Group.SETTINGS, read=number_of(f"proc/sys/vm/{name}"), tuned_by=f"vm.{name}")
        for name in VM
    ),
)  # fmt: skip
