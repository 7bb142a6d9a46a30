"""Facts of this machine that a figure depends on: kernel, CPU, memory, limits. Reads only."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from fslab.system import sysfs

CPU = Path("/sys/devices/system/cpu")


def gather(proc: Path = Path("/proc"), cpu: Path = CPU) -> dict[str, Any]:
    """Facts as plain values; None where the machine does not say. Sizes in bytes."""
    system = platform.uname()
    return {
        "hostname": system.node,
        "kernel": system.release,
        "kernel_build": system.version,
        "architecture": system.machine,
        "distribution": _distribution(),
        "cpu": _cpu_model(proc / "cpuinfo"),
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "memory_bytes": _memory(proc / "meminfo"),
        "governor": sysfs.text(cpu / "cpu0/cpufreq/scaling_governor"),
        "hypervisor": "hypervisor" in (_cpu_field(proc / "cpuinfo", "flags") or "").split(),
        "kernel_command_line": sysfs.text(proc / "cmdline"),
        "preempt_model": "PREEMPT" in system.version,
        "boot_id": sysfs.text(proc / "sys/kernel/random/boot_id"),
        "load_1min": os.getloadavg()[0],
        "dirty_ratio": sysfs.number(proc / "sys/vm/dirty_ratio"),
        "dirty_background_ratio": sysfs.number(proc / "sys/vm/dirty_background_ratio"),
    }


def identity(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that must not differ between trials that are compared.

    Memory in whole GiB: what the firmware takes may change a little from boot to boot.
    """
    names = ("hostname", "kernel", "kernel_build", "architecture", "cpu", "cpus", "kernel_command_line")
    memory = facts.get("memory_bytes")
    return {
        **{name: facts.get(name) for name in names},
        "memory_gib": round(memory / (1 << 30)) if memory is not None else None,
    }


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _cpu_field(path: Path, name: str) -> str | None:
    for line in (sysfs.text(path) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _cpu_model(path: Path) -> str | None:
    return _cpu_field(path, "model name") or _cpu_field(path, "Model") or _cpu_field(path, "CPU part")


def _memory(path: Path) -> int | None:
    total = _cpu_field(path, "MemTotal")
    return int(total.split()[0]) * 1024 if total else None
