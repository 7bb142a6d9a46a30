"""Facts of the kernel, the processors and the memory. Only reads."""

import os
import re
from pathlib import Path

from fslab.machine import _cpu_latency
from fslab.machine.fact import (
    Fact,
    FactGroup,
    Value,
    Weight,
    flag_of,
    memory_of,
    number_of,
    selected_of,
    text_of,
)
from fslab.system import damon, sysfs, warm_memory

VULNERABILITIES = "sys/devices/system/cpu/vulnerabilities"
# File names. They differ with each installed kernel and have no effect by themselves.
_BOOT_FILES = re.compile(r"(?:BOOT_IMAGE|initrd)=\S*\s*")
# Options that fslab gives its guests: directories, whose path contains the campaign's id, and descriptors.
_OF_ONE_RUN = re.compile(r'(?<!\S)(?:fslab_\w+=|con\d*=\S*fd:)(?:"[^"]*"|\S)*\s*')
_PREEMPTION = re.compile(r"\bPREEMPT\w*")


def mitigations(root: Path) -> Value:
    """Return the kernel's mitigation for each known vulnerability of the processor (admin-guide/hw-vuln)."""
    found = {path.name: sysfs.text(path) for path in (root / VULNERABILITIES).glob("*")}
    return {name: text for name, text in sorted(found.items()) if text} or None


def preemption(_: Path) -> Value:
    """Return the preemption model in the kernel's version string, such as ``PREEMPT_DYNAMIC``."""
    found = _PREEMPTION.search(os.uname().version)
    return found[0] if found else None


def command_line(value: object) -> str:
    """Return the command line without the names of the booted files, and without a guest's options for one run."""
    return _OF_ONE_RUN.sub("", _BOOT_FILES.sub("", str(value))).strip()


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
    Fact(name="kernel", group=FactGroup.KERNEL, read=lambda _: os.uname().release),
    Fact(name="kernel_build", group=FactGroup.KERNEL, read=lambda _: os.uname().version),
    Fact(name="preempt_model", group=FactGroup.KERNEL, read=preemption),
    Fact(name="mitigations", group=FactGroup.KERNEL, read=mitigations),
    Fact(name="kernel_taint", group=FactGroup.KERNEL, weight=Weight.SHOWN, read=text_of("proc/sys/kernel/tainted")),
    Fact(
        name="kernel_command_line", group=FactGroup.SETTINGS, read=text_of("proc/cmdline"), canonical=command_line
    ),
    Fact(
        name="clocksource", group=FactGroup.SETTINGS,
        read=text_of("sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ),
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
    Fact(name="cpu_dma_latency", group=FactGroup.SETTINGS, tuned_by="cpu_dma_latency", read=_cpu_latency.fact),
    Fact(
        name="idle_driver", group=FactGroup.SETTINGS, weight=Weight.SHOWN,
        read=text_of(f"{CPUS}/cpuidle/current_driver"),
    ),
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
)  # fmt: skip
