"""The settings that a study may change, with their bounds. Pure: ``_settings`` finds what this machine has.

No other setting can be set. A value that the kernel accepts can still make the machine unusable (``vm.min_free_kbytes``
near the size of memory kills every process), so each setting has bounds. The list excludes settings that reserve
memory, refuse memory to other programs, act immediately or protect against attacks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fslab.errors import nearest

AUTO = "auto"
IDLE = "cpu_dma_latency"
TIMERS = "stop_timers"
TIMER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9:_.@\\-]*\.timer")
FLAGS: Mapping[str, bool] = {
    "on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False,
}  # fmt: skip


class Bound(Protocol):
    """The allowed values of a setting."""

    def check(self, value: str, memory_bytes: int | None) -> None:
        """Raise ValueError for a value out of bounds. ``memory_bytes``: the machine's memory, None if unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """A whole number from ``low`` to ``high``; with ``auto``, also this word.

    For an amount of memory, counted in ``unit_bytes``: at most ``share`` of the machine's memory.
    """

    low: int
    high: int
    unit_bytes: int = 1
    share: float | None = None
    auto: bool = False

    def check(self, value: str, memory_bytes: int | None) -> None:
        """Raise ValueError if the value is not a whole number or is out of bounds."""
        if self.auto and value == AUTO:
            return
        if not re.fullmatch(r"[0-9]{1,18}", value) or not self.low <= int(value) <= self.high:
            also = ", or auto" if self.auto else ""
            raise ValueError(f"'{value}' is not a whole number from {self.low} to {self.high}{also}")
        if self.share is None or memory_bytes is None:
            return
        most = int(memory_bytes * self.share) // self.unit_bytes
        if int(value) > most:
            raise ValueError(
                f"{value} is too large: at most {most}, {self.share:.0%} of this machine's memory"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """One of ``words``. Without ``words``, a plain name, which is later checked against the kernel's own list."""

    words: Sequence[str] = ()

    def check(self, value: str, memory_bytes: int | None) -> None:  # noqa: ARG002
        """Raise ValueError for any other value. A value with a slash or a dot could name a file or a kernel module."""
        if self.words and value not in self.words:
            raise ValueError(f"'{value}' is not one of {', '.join(self.words)}")
        if not self.words and not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", value):
            raise ValueError(
                f"'{value}' is not a name such as none or performance: use a-z, 0-9, '_' and '-'"
            )


class Timers:
    """Names of systemd timers."""

    def check(self, value: str, memory_bytes: int | None) -> None:  # noqa: ARG002
        """Raise ValueError for a unit that is not a timer: stopping a service such as sshd could lock users out."""
        timers(value)


def timers(value: str) -> tuple[str, ...]:
    """Return the timer names in a text, separated by spaces or commas. ValueError for an invalid name."""
    found = tuple(filter(None, re.split(r"[\s,]+", value)))
    for name in found:
        if not TIMER_NAME.fullmatch(name):
            raise ValueError(f"'{name}' is not the name of a timer, such as apt-daily.timer")
    return found


_DIRTY_SHARE, _FREE_SHARE = 0.5, 1 / 16
_PERCENT = Number(low=0, high=100)
# Documentation/admin-guide/sysctl/vm.rst. Where the kernel accepts larger values, the bound keeps the machine usable
# for other programs.
BOUNDS: Mapping[str, Bound] = {
    "vm.compact_unevictable_allowed": Number(low=0, high=1),
    "vm.compaction_proactiveness": _PERCENT,
    "vm.defrag_mode": Number(low=0, high=1),
    "vm.dirty_background_bytes": Number(low=1, high=1 << 40, share=_DIRTY_SHARE),
    "vm.dirty_background_ratio": Number(low=0, high=50),
    "vm.dirty_bytes": Number(low=8192, high=1 << 40, share=_DIRTY_SHARE),
    "vm.dirty_expire_centisecs": Number(low=1, high=360_000),
    "vm.dirty_ratio": Number(low=1, high=50),
    "vm.dirty_writeback_centisecs": Number(low=0, high=360_000),
    "vm.dirtytime_expire_seconds": Number(low=1, high=86_400),
    "vm.extfrag_threshold": Number(low=0, high=1000),
    "vm.laptop_mode": Number(low=0, high=60),
    "vm.max_map_count": Number(low=65_530, high=16_777_216),
    "vm.min_free_kbytes": Number(low=1024, high=1 << 20, unit_bytes=1024, share=_FREE_SHARE),
    "vm.min_slab_ratio": Number(low=0, high=50),
    "vm.min_unmapped_ratio": Number(low=0, high=50),
    "vm.numa_stat": Number(low=0, high=1),
    "vm.overcommit_memory": Number(low=0, high=1),  # 2 refuses memory to unrelated programs
    "vm.page_lock_unfairness": Number(low=0, high=1000),
    "vm.stat_interval": Number(low=1, high=3600),
    "vm.swappiness": Number(low=0, high=200),
    "vm.vfs_cache_pressure": Number(low=1, high=1000),  # 0 never reclaims inodes: out of memory
    "vm.vfs_cache_pressure_denom": Number(low=100, high=10_000),
    "vm.watermark_boost_factor": Number(low=0, high=15_000),
    "vm.watermark_scale_factor": Number(low=1, high=1000),
    "vm.zone_reclaim_mode": Number(low=0, high=7),
    "cpu_governor": Word(),
    "cpu_turbo": Word(words=tuple(FLAGS)),
    "cpu_smt": Word(words=tuple(FLAGS)),
    IDLE: Number(low=0, high=1_000_000, auto=True),  # µs
    "transparent_hugepage": Word(words=("always", "madvise", "never")),
    "io_scheduler": Word(),
    "nr_requests": Number(low=4, high=16_384),  # include/linux/blkdev.h, BLKDEV_MIN_RQ
    "read_ahead_kib": Number(low=0, high=65_536),
    "max_sectors_kib": Number(low=4, high=65_536),
    "wbt_lat_usec": Number(low=0, high=60_000_000),
    "rotational": Number(low=0, high=1),
    "stripe_cache_size": Number(low=17, high=32_768),  # drivers/md/raid5.c, raid5_set_cache_size
    TIMERS: Timers(),
}
NAMES = tuple(BOUNDS)


# Of each pair of settings only the one that was set last is in force. The other reads 0 (sysctl/vm.rst).
PAIRS = {
    "dirty_bytes": "dirty_ratio",
    "dirty_ratio": "dirty_bytes",
    "dirty_background_bytes": "dirty_background_ratio",
    "dirty_background_ratio": "dirty_background_bytes",
}


def normal(name: str, value: str) -> str | bool:
    """Return the value as a fact of the machine has it: ``yes`` is True, and ``007`` is ``7``."""
    bound = BOUNDS.get(name)
    if isinstance(bound, Word) and bound.words == tuple(FLAGS):
        return FLAGS.get(value, value)
    return str(int(value)) if isinstance(bound, Number) and value.isdecimal() else value


def check(name: str, value: str, *, memory_bytes: int | None = None) -> None:
    """Raise ValueError for a setting that a study cannot change, or a value out of its bounds."""
    if name not in BOUNDS:
        raise ValueError(f"cannot be set by a study: {nearest(name, NAMES)}")
    BOUNDS[name].check(value, memory_bytes)


def check_together(settings: Mapping[str, str], beside: Mapping[str, str] | None = None) -> None:
    """Raise ValueError if the kernel would not follow one of the settings because of another one. ``beside``: all that
    are in force then, if known."""
    for name, other in PAIRS.items():
        if {f"vm.{name}", f"vm.{other}"} <= settings.keys():
            raise ValueError(f"vm.{name} and vm.{other} replace each other: set only one")
    for unit in ("bytes", "ratio"):
        background, limit = (
            settings.get(f"vm.dirty_background_{unit}"),
            (beside or settings).get(f"vm.dirty_{unit}"),
        )
        if background and limit and int(background) >= int(limit):  # mm/page-writeback.c, domain_dirty_limits
            what = f"vm.dirty_background_{unit} is {background}, and vm.dirty_{unit} {limit}"
            raise ValueError(f"{what}: the kernel would use half of the latter; write less than {limit}")
