"""Find the sources of evidence that this kernel offers, for ``fslab doctor``. Opens and closes each briefly."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fslab.system import detached_mounts, sysfs
from fslab.tracing.ebpf import DeviceSplit
from fslab.tracing.ring import Ring

_NO_DEVICE = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceSource:
    """One source of evidence. ``missing``: why it is unavailable, or None. ``costs``: what then cannot be measured."""

    name: str
    summary: str
    missing: str | None
    costs: str


def sources() -> list[TraceSource]:
    """Return all sources, as available to this user on this machine."""
    return [
        _tried("tracefs", "the kernel's tracing", detached_mounts.tracefs, "everything that tracing measures"),
        _tried(
            "ebpf", "split into data and metadata by a built-in eBPF program",
            lambda: _opened(DeviceSplit, _NO_DEVICE),
            "the exact split of device I/O into data and metadata; the trace ring gives a coarser one",
        ),
        _tried(
            "ring", "order of requests, submitters, journal commits",
            lambda: _opened(Ring, [_NO_DEVICE], None, f"fslab-{os.getpid()}"),
            "share of sequential I/O, submitters, journal and superblock writes, commits during slow operations",
        ),
        _tried(
            "debugfs", "pages that one file system dirtied", detached_mounts.debugfs,
            "whether O_DIRECT was honoured by this file system; only counters of the whole machine are left",
        ),
        _tried("kernel-log", "errors and warnings of the kernel", _kernel_log, "whether the kernel logged an error"),
        _tried(
            "pressure", "share of the time in which tasks waited (PSI)", _pressure, "waiting for CPU, memory and I/O"
        ),
        _iostats(),
    ]  # fmt: skip


def _kernel_log() -> None:
    os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))


def _pressure() -> None:
    Path("/proc/pressure/io").read_text()


def _tried(name: str, summary: str, attempt: Callable[[], object], costs: str) -> TraceSource:
    missing = None
    try:
        attempt()
    except OSError as error:
        missing = error.strerror or str(error)
    return TraceSource(name=name, summary=summary, missing=missing, costs=costs)


def _opened(kind: Callable[..., DeviceSplit | Ring], *arguments: object) -> None:
    kind(detached_mounts.tracefs(), *arguments).close()


def _iostats() -> TraceSource:
    disks = [
        file.parent.parent for file in sysfs.SYS.glob("block/*/queue/iostats") if sysfs.text(file) == "0"
    ]
    off = sorted(
        disk.name for disk in disks if sysfs.number(disk / "size")
    )  # a disk without a size is not in use
    return TraceSource(
        name="iostats",
        summary="the block device's own counters",
        missing=f"switched off (queue/iostats is 0) for {', '.join(off)}" if off else None,
        costs="bytes, requests, flushes and write amplification of these disks; traces cannot be checked",
    )
