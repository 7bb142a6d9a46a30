"""What of the kernel's evidence can be had here, tried for a moment and undone: for ``fslab doctor``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fslab.system import detached, sysfs
from fslab.tracing.ebpf import DeviceSplit
from fslab.tracing.hist import Histogram
from fslab.tracing.ring import Ring

_NO_DEVICE = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One source of evidence; ``missing`` is why it is not to be had, or None. ``costs``: what then goes unsaid."""

    name: str
    summary: str
    missing: str | None
    costs: str


def sources(sys: Path = sysfs.SYS) -> list[Source]:
    """All of them, as this user finds them on this machine."""
    traced = "the split of device traffic into data and metadata"
    return [
        _tried("tracefs", "the kernel's tracing", detached.tracefs, "everything that is traced"),
        _tried("ebpf", "split of traffic by a program of our own", lambda: _opened(DeviceSplit, _NO_DEVICE), traced),
        _tried("histogram", "the same by the kernel's histograms", lambda: _opened(Histogram, [_NO_DEVICE]), traced),
        _tried(
            "ring", "order of requests, submitters, journal commits", lambda: _opened(Ring, [_NO_DEVICE], None),
            "sequential share, journal and superblock writes",
        ),
        _tried(
            "debugfs", "pages that one file system dirtied", detached.debugfs,
            "whether O_DIRECT was honoured, of one file system: then it is of the whole machine",
        ),
        _iostats(sys),
    ]  # fmt: skip


def _tried(name: str, summary: str, attempt: Callable[[], object], costs: str) -> Source:
    missing = None
    try:
        attempt()
    except OSError as error:
        missing = error.strerror or str(error)
    return Source(name=name, summary=summary, missing=missing, costs=costs)


def _opened(kind: Callable[..., AbstractContextManager[Any]], *arguments: object) -> None:
    with kind(detached.tracefs(), *arguments):
        pass


def _iostats(sys: Path) -> Source:
    disks = [file.parent.parent for file in sys.glob("block/*/queue/iostats") if sysfs.text(file) == "0"]
    off = sorted(
        disk.name for disk in disks if sysfs.number(disk / "size")
    )  # without a size it is not in use
    return Source(
        name="iostats", summary="the block device's own counters",
        missing=f"switched off for {', '.join(off)}" if off else None,
        costs="bytes, requests, flushes and amplification there; no trace can be checked",
    )  # fmt: skip
