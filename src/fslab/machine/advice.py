"""Properties of this machine that make figures noisy or misleading, and the tuning against them. Only reads.

Advice on the machine uses only its facts, which are cheap to read. An unknown fact leads to no advice.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fslab.system import disk_server

FAST_SOURCES = frozenset({None, "tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"})
BUSY = 0.2  # share of the processors that the 1-minute load average may occupy without advice


@dataclass(frozen=True, slots=True)
class Advice:
    """A property to consider. ``tuning``: the line in a study that fixes it, or None if a study cannot."""

    what: str
    tuning: str | None = None


def advise(facts: Mapping[str, Any]) -> list[Advice]:
    """Return what to consider before measuring on this machine. ``facts``: from ``facts.gather``."""
    return [*_clocks(facts), *_neighbours(facts), *_memory(facts)]


def advise_disks() -> list[Advice]:
    """Return what the server of a virtual disk lacks on this machine. Empty for a user who cannot start one."""
    if not disk_server.FUSE.exists() or disk_server.may_flush() is not False or os.geteuid() != 0:
        return []
    what = (
        "virtual disks: CAP_SYS_RESOURCE is missing, so PR_SET_IO_FLUSHER is refused and memory reclaim can wait for "
        "a disk's server that waits for memory: keep the total 'memory' of virtual disks well below the free memory"
    )
    return [Advice(what)]


def _clocks(facts: Mapping[str, Any]) -> Iterator[Advice]:
    """Yield advice on CPU clocks that depend on the load (the first of two runs is slower) and on the clock source."""
    governor, source = facts.get("governor"), facts.get("clocksource")
    if governor not in {None, "performance"}:
        what = f"the CPU governor is {governor}: the CPU frequency depends on the load"
        yield Advice(what, "cpu_governor: performance")
    if facts.get("turbo"):
        what = "turbo is on: the CPU frequency depends on temperature and on the load of other CPUs"
        yield Advice(what, "cpu_turbo: off")
    if source not in FAST_SOURCES:
        yield Advice(f"the clock source is {source}: reading the time is slow")


def _neighbours(facts: Mapping[str, Any]) -> Iterator[Advice]:
    load, cpus = facts.get("load_1min"), facts.get("cpus")
    if load is not None and cpus and load > BUSY * cpus:
        yield Advice(f"other programs are running: the 1-minute load average is {load:.1f} on {cpus} CPUs")
    if facts.get("init") == "systemd":
        what = "systemd timers can start jobs during a trial (systemctl list-timers)"
        yield Advice(what, "stop_timers: apt-daily.timer apt-daily-upgrade.timer fstrim.timer man-db.timer")


def _memory(facts: Mapping[str, Any]) -> Iterator[Advice]:
    swappiness = facts.get("swappiness") or 0
    if (facts.get("swap_bytes") or 0) > 0 and swappiness > 10:
        what = f"swap is on and vm.swappiness is {swappiness}: memory can be swapped out during a trial"
        yield Advice(what, "vm.swappiness: 1")
    if age_s := facts.get("proactive_reclaim_s"):
        yield Advice(
            f"the kernel evicts pages that were not accessed for {age_s:g} s (DAMON), so a longer run finds less in "
            "the page cache than memory could keep"
        )
