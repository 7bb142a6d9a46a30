"""Facts of the processors: model, count, threads, speed. Only reads."""

import os
from pathlib import Path

from fslab.machine import _idle
from fslab.machine.fact import Fact, FactGroup, Value, Weight, flag_of, number_of, text_of
from fslab.system import sysfs

CPUS = "sys/devices/system/cpu"


def model(root: Path) -> Value:
    """Return ``model name`` on x86, ``Model`` on some ARM kernels, otherwise the part number."""
    cpuinfo = root / "proc/cpuinfo"
    names = ("model name", "Model", "CPU part")
    return next((found for name in names if (found := sysfs.field(cpuinfo, name))), None)


def each_cpu(name: str, root: Path) -> Value:
    """Return the value of a cpufreq file for all processors; different values are joined by commas."""
    found = {sysfs.text(path) for path in (root / CPUS).glob(f"cpu[0-9]*/cpufreq/{name}")}
    return ", ".join(sorted(text for text in found if text)) or None


def turbo(root: Path) -> Value:
    """Return whether clock rates above the nominal one are allowed (admin-guide/pm/intel_pstate, cpufreq)."""
    off = sysfs.number(root / CPUS / "intel_pstate/no_turbo")
    if off is not None:
        return off == 0
    boost = sysfs.number(root / CPUS / "cpufreq/boost")
    return None if boost is None else boost == 1


def nodes(root: Path) -> Value:
    """Return the number of memory nodes, or None on a kernel without NUMA."""
    return len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None


FACTS = (
    Fact(name="cpu", group=FactGroup.CPU, read=model),
    Fact(name="cpus", group=FactGroup.CPU, read=lambda _: os.cpu_count()),
    Fact(name="cpus_usable", group=FactGroup.CPU, read=lambda _: len(os.sched_getaffinity(0))),
    Fact(name="microcode", group=FactGroup.CPU, read=lambda root: sysfs.field(root / "proc/cpuinfo", "microcode")),
    Fact(name="numa_nodes", group=FactGroup.CPU, read=nodes),
    Fact(name="cpu_max_khz", group=FactGroup.CPU, read=number_of(f"{CPUS}/cpu0/cpufreq/cpuinfo_max_freq")),
    Fact(name="smt", group=FactGroup.SETTINGS, read=flag_of(f"{CPUS}/smt/active"), tuned_by="cpu_smt"),
    Fact(name="turbo", group=FactGroup.SETTINGS, read=turbo, tuned_by="cpu_turbo"),
    Fact(
        name="governor", group=FactGroup.SETTINGS, tuned_by="cpu_governor",
        read=lambda root: each_cpu("scaling_governor", root),
    ),
    Fact(
        name="energy_preference", group=FactGroup.SETTINGS,
        read=lambda root: each_cpu("energy_performance_preference", root),
    ),
    Fact(name="cpufreq_driver", group=FactGroup.SETTINGS, read=text_of(f"{CPUS}/cpu0/cpufreq/scaling_driver")),
    Fact(name="cpu_dma_latency", group=FactGroup.SETTINGS, tuned_by="cpu_dma_latency", read=_idle.fact),
    Fact(
        name="idle_driver", group=FactGroup.SETTINGS, weight=Weight.SHOWN,
        read=text_of(f"{CPUS}/cpuidle/current_driver"),
    ),
)  # fmt: skip
