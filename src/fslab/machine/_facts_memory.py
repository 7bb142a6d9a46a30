"""Facts of the memory: its size, and the settings of writeback, swap and huge pages. Only reads."""

from fslab.machine.fact import Fact, FactGroup, Value, flag_of, memory_of, number_of, selected_of
from fslab.system import damon, warm_memory

HUGE = "sys/kernel/mm/transparent_hugepage"
# Settings of sysctl/vm.rst that decide when and how much dirty data is written back, and what is evicted first.
VM = (
    "swappiness", "dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes",
    "dirty_expire_centisecs", "dirty_writeback_centisecs", "vfs_cache_pressure",
)  # fmt: skip


# The memory that the firmware and the kernel reserve varies slightly from boot to boot.
TOLERANCE = 0.02
_STEP = 64 << 20


def rounded(value: int) -> Value:
    """Round to whole GiB, below 2 GiB to steps of 64 MiB. Below 128 MiB the value is returned unchanged."""
    if value >= 2 << 30:
        return f"{round(value / (1 << 30))} GiB"
    if value < 2 * _STEP:
        return value
    return f"{round(value / _STEP) * (_STEP >> 20)} MiB"


FACTS = (
    Fact(
        name="memory_bytes",
        group=FactGroup.MEMORY,
        read=memory_of("MemTotal"),
        canonical=rounded,
        tolerance=TOLERANCE,
    ),
    Fact(name="swap_bytes", group=FactGroup.MEMORY, read=memory_of("SwapTotal")),
    Fact(
        name="transparent_hugepage",
        group=FactGroup.SETTINGS,
        read=selected_of(f"{HUGE}/enabled"),
        tuned_by="transparent_hugepage",
    ),
    Fact(
        name="free_page_reporting",
        group=FactGroup.SETTINGS,
        read=lambda root: warm_memory.is_reported(root / "sys"),
    ),
    Fact(
        name="proactive_reclaim_s",
        group=FactGroup.SETTINGS,
        read=lambda root: damon.eviction_age_s(root / "sys"),
    ),
    Fact(name="transparent_hugepage_defrag", group=FactGroup.SETTINGS, read=selected_of(f"{HUGE}/defrag")),
    Fact(name="zswap", group=FactGroup.SETTINGS, read=flag_of("sys/module/zswap/parameters/enabled")),
    *(
        Fact(
            name=name, group=FactGroup.SETTINGS, read=number_of(f"proc/sys/vm/{name}"), tuned_by=f"vm.{name}"
        )
        for name in VM
    ),
)
