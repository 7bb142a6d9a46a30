"""What of this machine makes figures scatter or mean something else, and the tuning that holds it. Reads only.

Only what the facts tell at no cost; says nothing of what they do not tell.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fslab.system import disk

BUSY = 0.2  # of the processors, over the last minute


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """``tuning``: the key of a study that holds it, as one writes it; None where a study cannot."""

    what: str
    tuning: str | None = None


def advise(facts: Mapping[str, Any]) -> list[Advice]:
    """What to consider before measuring here, by the facts of ``facts.gather``."""
    return [*_clocks(facts), *_neighbours(facts)]


def advise_disks() -> list[Advice]:
    """What the server of a virtual disk lacks here; ``doctor`` says elsewhere who may not serve any."""
    if not disk.FUSE.exists() or disk.may_flush() is not False or os.geteuid() != 0:
        return []
    what = (
        "virtual disks: CAP_SYS_RESOURCE is missing, so PR_SET_IO_FLUSHER is refused and memory reclaim can wait for "
        "a disk's server: keep the sum of their 'memory' well below what is free"
    )
    return [Advice(what=what)]


def _clocks(facts: Mapping[str, Any]) -> list[Advice]:
    """Clocks that depend on the load make the first of two runs the slower one."""
    found = []
    governor = facts.get("governor")
    if governor is not None and governor != "performance":
        found.append(
            Advice(
                what=f"the CPU governor is {governor}: clocks follow the load",
                tuning="cpu_governor: performance",
            )
        )
    if facts.get("turbo"):
        found.append(
            Advice(what="turbo is on: clocks follow heat and the other CPUs' load", tuning="cpu_turbo: off")
        )
    if facts.get("clocksource") not in {
        None,
        "tsc",
        "arch_sys_counter",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
    }:
        found.append(
            Advice(what=f"the clocksource is {facts['clocksource']}: each reading of the time costs much")
        )
    return found


def _neighbours(facts: Mapping[str, Any]) -> list[Advice]:
    found = []
    load, cpus = facts.get("load_1min"), facts.get("cpus")
    if load is not None and cpus and load > BUSY * cpus:
        found.append(
            Advice(what=f"something else runs here: the load of the last minute is {load:.1f} on {cpus} CPUs")
        )
    if facts.get("init") == "systemd":
        found.append(
            Advice(
                what="systemd starts jobs by timers (systemctl list-timers)",
                tuning="stop_timers: apt-daily.timer apt-daily-upgrade.timer fstrim.timer man-db.timer",
            )
        )
    if (facts.get("swap_bytes") or 0) > 0 and (facts.get("swappiness") or 0) > 10:
        found.append(
            Advice(what="idle memory is swapped out while files are cached", tuning="vm.swappiness: 1")
        )
    return found
