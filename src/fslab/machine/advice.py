"""Properties of this machine that make figures noisy or misleading, and the tuning against them. Only reads.

Advice on the machine uses only its facts, which are cheap to read. An unknown fact leads to no advice.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fslab.system import disk_server

BUSY = 0.2  # share of the processors that the 1-minute load average may occupy without advice


@dataclass(frozen=True, kw_only=True, slots=True)
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
    return [Advice(what=what)]


def _clocks(facts: Mapping[str, Any]) -> list[Advice]:
    """Return advice on CPU clocks that depend on the load (the first of two runs is slower) and on the clock source."""
    found = []
    governor = facts.get("governor")
    if governor is not None and governor != "performance":
        found.append(
            Advice(
                what=f"the CPU governor is {governor}: the CPU frequency depends on the load",
                tuning="cpu_governor: performance",
            )
        )
    if facts.get("turbo"):
        found.append(
            Advice(
                what="turbo is on: the CPU frequency depends on temperature and on the load of other CPUs",
                tuning="cpu_turbo: off",
            )
        )
    if facts.get("clocksource") not in {
        None,
        "tsc",
        "arch_sys_counter",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
    }:
        found.append(Advice(what=f"the clock source is {facts['clocksource']}: reading the time is slow"))
    return found


def _neighbours(facts: Mapping[str, Any]) -> list[Advice]:
    found = []
    load, cpus = facts.get("load_1min"), facts.get("cpus")
    if load is not None and cpus and load > BUSY * cpus:
        found.append(
            Advice(what=f"other programs are running: the 1-minute load average is {load:.1f} on {cpus} CPUs")
        )
    if facts.get("init") == "systemd":
        found.append(
            Advice(
                what="systemd timers can start jobs during a trial (systemctl list-timers)",
                tuning="stop_timers: apt-daily.timer apt-daily-upgrade.timer fstrim.timer man-db.timer",
            )
        )
    return found


def _memory(facts: Mapping[str, Any]) -> list[Advice]:
    found = []
    if (facts.get("swap_bytes") or 0) > 0 and (facts.get("swappiness") or 0) > 10:
        found.append(
            Advice(
                what=f"swap is on and vm.swappiness is {facts['swappiness']}: memory can be swapped out during a trial",
                tuning="vm.swappiness: 1",
            )
        )
    if age_s := facts.get("proactive_reclaim_s"):
        found.append(
            Advice(
                what=f"the kernel evicts pages that were not accessed for {age_s:g} s (DAMON), so a longer run finds "
                "less in the page cache than memory could keep"
            )
        )
    return found
