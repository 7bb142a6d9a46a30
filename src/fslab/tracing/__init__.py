"""Kernel tracing while a workload runs: only in the explain pass, never in trials that measure speed.

Tracing costs speed, so a traced trial gives no figure of speed. Every figure names its method, and is checked against
the counters of the block device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class TraceMethod(StrEnum):
    """The method that splits the device's I/O into kinds: the exact one first."""

    EBPF = "built-in eBPF program at block_rq_complete"
    RING = "trace ring, read afterwards"


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """Requests that a device completed, and their bytes."""

    bytes: int = 0
    requests: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(bytes=self.bytes + other.bytes, requests=self.requests + other.requests)


SECTOR_BYTES = 512  # the kernel's unit, whatever the device's block size is
# By operation: R(ead), W(rite), D(iscard), F(lush and others), followed by M if it is marked as metadata (REQ_META).
Split = Mapping[str, Traffic]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sectors:
    """The places of a file system's journal and superblocks: half-open ranges of sectors (``SECTOR_BYTES``).

    ``journal``: empty if it has none; None: unknown."""

    journal: tuple[tuple[int, int], ...] | None = None
    superblocks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RingFigures:
    """Figures from the sequence of events. ``by_place``: writes split into data, metadata, journal and superblock;
    ``metadata_and_journal`` if the journal's place is unknown.
    ``sequential``: number of non-empty writes that start where the previous one on the device ended. ``submitted``:
    bytes by the name of the task that submitted them. ``work_s``: wall time of kernel work by function. ``commits_s``:
    commits of the journal as (start, end) on the monotonic clock. ``overruns``: lost events. ``sizes``: number of
    non-empty writes by size in bytes."""

    written: Traffic
    by_place: Mapping[str, Traffic]
    sequential: int
    submitted: Mapping[str, int]
    work_s: Mapping[str, float]
    commits_s: tuple[tuple[float, float], ...]
    overruns: int
    sizes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """One traced run. ``stat``: the block device's own count for the same time. ``idle_bytes``: bytes that the device
    wrote in the ``idle_s`` seconds before the run, when nothing should write. ``absent``: what this kernel does not
    offer, and why."""

    method: TraceMethod | None
    split: Split
    stat: Split
    ring: RingFigures | None
    idle_bytes: int
    idle_s: float
    absent: tuple[str, ...] = field(default=())


def kind_of(rwbs: str) -> str:
    """Return the key in a :data:`Split` for the kernel's letters (include/trace/events/block.h). Example: ``FWFSM``,
    a write of metadata after a flush, with FUA, synchronous, has the key ``WM``."""
    letters = rwbs.removeprefix("F") if rwbs[1:2] in {"R", "W", "D"} else rwbs
    operation = letters[:1] if letters[:1] in {"R", "W", "D"} else "F"
    return operation + ("M" if "M" in rwbs else "")
