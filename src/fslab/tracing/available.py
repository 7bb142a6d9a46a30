"""Which of the kernel's evidence is available here, tried briefly and put back: for ``fslab doctor``."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fslab.system import detached, sysfs
from fslab.tracing.ebpf import DeviceSplit
from fslab.tracing.hist import Histogram
from fslab.tracing.ring import Ring

_NO_DEVICE = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceSource:
    """One source of evidence; ``missing`` is why it is unavailable, or None. ``costs``: what is then missing."""

    name: str
    summary: str
    missing: str | None
    costs: str


def sources(sys: Path = sysfs.SYS) -> list[TraceSource]:
    """All of them, as this user finds them on this machine."""
    return [
        _tried("tracefs", "the kernel's tracing", detached.tracefs, "everything that is traced"),
        *_of_split([
            _tried("ebpf", "split of traffic by a built-in eBPF program", lambda: _opened(DeviceSplit, _NO_DEVICE), ""),
            _tried("histogram", "the same by the kernel's histograms", lambda: _opened(Histogram, [_NO_DEVICE]), ""),
        ]),
        _tried(
            "ring", "order of requests, submitters, journal commits", lambda: _opened(Ring, [_NO_DEVICE], None),
            "sequential share, submitters, journal and superblock writes, commits beside slow operations",
        ),
        _tried(
            "debugfs", "pages that one file system dirtied", detached.debugfs,
            "pages dirtied by one file system, to check O_DIRECT: counted for the whole machine instead",
        ),
        _tried("kernel-log", "errors and warnings that the kernel logged", _kernel_log, "whether it logged an error"),
        _tried("pressure", "share of the time in which tasks waited", _pressure, "waiting for CPU, memory and I/O"),
        _iostats(sys),
    ]  # fmt: skip


def _of_split(methods: list[TraceSource]) -> list[TraceSource]:
    """Each tells the same; the trace ring does so as well, only coarser."""
    told = next((method.name for method in methods if method.missing is None), None)
    costs = (
        f"nothing: {told} is used instead"
        if told
        else "the split of traffic into data and metadata, except for what the ring shows of it"
    )
    return [replace(method, costs=costs) for method in methods]


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


def _opened(kind: Callable[..., AbstractContextManager[Any]], *arguments: object) -> None:
    with kind(detached.tracefs(), *arguments):
        pass


def _iostats(sys: Path) -> TraceSource:
    disks = [file.parent.parent for file in sys.glob("block/*/queue/iostats") if sysfs.text(file) == "0"]
    off = sorted(
        disk.name for disk in disks if sysfs.number(disk / "size")
    )  # without a size it is not in use
    return TraceSource(
        name="iostats", summary="the block device's own counters",
        missing=f"switched off for {', '.join(off)}" if off else None,
        costs="bytes, requests, flushes and amplification there; no trace can be checked",
    )  # fmt: skip
