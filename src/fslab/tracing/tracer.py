"""Trace one run with the best method of this kernel, and read the block device's counters for comparison; for ``fslab
doctor``, find the sources of evidence that this kernel offers.

Starts when the device is idle, and stops when everything has been written and unmounted. Judges nothing.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from fslab.system import namespaces, sysfs
from fslab.tracing import RingFigures, Sectors, Split, Trace, TraceMethod, Traffic, ondisk_layout
from fslab.tracing.ebpf import DeviceSplit
from fslab.tracing.ring import Ring

IDLE_S = 2.0
_NO_DEVICE = 0


@dataclass(kw_only=True, slots=True)
class Tracer:
    """``devices``: kernel names of the traced devices. ``volume``: kernel name of the device with the file system.
    ``ring``: the name of the kernel's trace instance."""

    devices: Sequence[str]
    volume: str | None
    ring: str
    sys: Path = sysfs.SYS
    _exit: ExitStack = field(default_factory=ExitStack)
    _absent: list[str] = field(default_factory=list)
    _splits: list[DeviceSplit] = field(default_factory=list)
    _ring: Ring | None = None
    _sectors: Sectors = field(default_factory=Sectors)
    _before: dict[str, Traffic] = field(default_factory=dict)
    _idle: int = 0

    def start(self) -> None:
        """Count the writes to the idle device for ``IDLE_S`` seconds, then start tracing."""
        quiet = self._stat()
        time.sleep(IDLE_S)
        self._idle = _written(self._stat()) - _written(quiet)
        numbers = [number for name in self.devices if (number := self._number(name)) is not None]
        if self.volume is not None:
            self._locate(Path("/dev") / self.volume, bare=list(self.devices) == [self.volume])
        if not numbers or len(numbers) < len(self.devices):
            self._absent.append(
                "trace: needs a whole block device; I/O of a partition cannot be separated from that of its disk"
            )
        else:
            self._begin(numbers)
        self._before = self._stat()

    def stop(self) -> Trace:
        """Stop tracing and return the trace."""
        after = self._stat()
        stat = {kind: _less(after[kind], self._before[kind]) for kind in after if kind in self._before}
        if self._ring is not None:
            self._ring.stop()
        method, split = self._counted()
        figures = None
        if self._ring is not None:
            of_ring, figures = self._ring.read(self._sectors)
            if method is None:
                method, split = TraceMethod.RING, of_ring
        self.close()
        return Trace(
            method=method, split=split, stat=stat, ring=_whole(figures, self._absent), idle_bytes=self._idle,
            idle_s=IDLE_S, absent=tuple(self._absent),
        )  # fmt: skip

    def close(self) -> None:
        """Remove all tracing from the kernel. Can be called twice."""
        self._exit.close()

    def _locate(self, volume: Path, *, bare: bool) -> None:
        """``bare``: the volume is the traced device. Elsewhere only a journal that does not exist has a known place."""
        try:
            found = ondisk_layout.of(volume)
            self._sectors = found if bare else Sectors(journal=None if found.journal else found.journal)
        except OSError as error:
            self._absent.append(f"place of journal and superblocks: {error.strerror}")

    def _begin(self, numbers: list[int]) -> None:
        try:
            tracefs = namespaces.tracefs()
        except OSError as error:
            self._absent.append(f"trace: no tracefs ({error.strerror})")
            return
        try:
            self._splits = [
                self._exit.enter_context(closing(DeviceSplit(tracefs, number))) for number in numbers
            ]
        except OSError as error:
            self._splits = []
            self._absent.append(f"{TraceMethod.EBPF}: {error.strerror or error}")
        try:
            volume = self._number(self.volume) if self.volume else None
            self._ring = self._exit.enter_context(closing(Ring(tracefs, numbers, volume, self.ring)))
        except OSError as error:
            self._absent.append(f"{TraceMethod.RING}: {error.strerror or error}")

    def _counted(self) -> tuple[TraceMethod | None, Split]:
        if self._splits:
            total: dict[str, Traffic] = {}
            for split in self._splits:
                for kind, traffic in split.read().items():
                    total[kind] = total.get(kind, Traffic()) + traffic
            return TraceMethod.EBPF, total
        return None, {}

    def _number(self, name: str) -> int | None:
        """Return the device's number; None for a partition, whose requests have the number of its disk."""
        own = self.sys / "class/block" / name
        major, _, minor = (sysfs.text(own / "dev") or "").partition(":")
        if not minor or (own / "partition").exists():
            return None
        return int(major) << 20 | int(minor)

    def _stat(self) -> dict[str, Traffic]:
        """Return reads, writes and discards as the block layer counts them; nothing if counting is switched off."""
        total: dict[str, Traffic] = {}
        for name in self.devices:
            own = self.sys / "class/block" / name
            if sysfs.text(own / "queue/iostats") == "0":
                return {}
            fields = [int(field) for field in (sysfs.text(own / "stat") or "").split()]
            for kind, first in (("R", 0), ("W", 4), ("D", 11)):
                if len(fields) > first + 2:
                    traffic = Traffic(bytes=fields[first + 2] * 512, requests=fields[first])
                    total[kind] = total.get(kind, Traffic()) + traffic
        return total


def _less(one: Traffic, other: Traffic) -> Traffic:
    return Traffic(bytes=one.bytes - other.bytes, requests=one.requests - other.requests)


def _written(stat: dict[str, Traffic]) -> int:
    return stat.get("W", Traffic()).bytes


def _whole(figures: RingFigures | None, absent: list[str]) -> RingFigures | None:
    """Return the figures, or None if the ring lost events: it then contains only the end of the run."""
    if figures is not None and figures.overruns:
        absent.append(f"{TraceMethod.RING}: {figures.overruns} events were lost; none is used")
        return None
    return figures


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
        _tried("tracefs", "the kernel's tracing", namespaces.tracefs, "everything that tracing measures"),
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
            "debugfs", "pages that one file system dirtied", namespaces.debugfs,
            "whether O_DIRECT was honoured by this file system; only counters of the whole machine are left",
        ),
        _tried("kernel-log", "errors and warnings of the kernel", _try_kmsg, "whether the kernel logged an error"),
        _tried(
            "pressure", "share of the time in which tasks waited (PSI)", _try_psi, "waiting for CPU, memory and I/O"
        ),
        _iostats(),
    ]  # fmt: skip


def _try_kmsg() -> None:
    os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))


def _try_psi() -> None:
    Path("/proc/pressure/io").read_text()


def _tried(name: str, summary: str, attempt: Callable[[], object], costs: str) -> TraceSource:
    missing = None
    try:
        attempt()
    except OSError as error:
        missing = error.strerror or str(error)
    return TraceSource(name=name, summary=summary, missing=missing, costs=costs)


def _opened(kind: Callable[..., DeviceSplit | Ring], *arguments: object) -> None:
    kind(namespaces.tracefs(), *arguments).close()


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
