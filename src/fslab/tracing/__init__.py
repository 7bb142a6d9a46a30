"""Kernel tracing while a workload runs: only in the explain pass, never where speed is measured.

Tracing costs speed, so a traced trial yields no figure of speed. Every figure names its method, and is checked against
the counters of the block device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class TraceMethod(StrEnum):
    """What split the device's I/O, from the cheapest and most exact to the coarsest."""

    EBPF = "own eBPF program at block_rq_complete"
    HIST = "histogram trigger at block_rq_complete"
    RING = "trace ring, read afterwards"


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """Requests that a device completed, and their bytes."""

    bytes: int = 0
    requests: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(bytes=self.bytes + other.bytes, requests=self.requests + other.requests)


# By operation: R(ead), W(rite), D(iscard), F(lush and others), with M where it was marked as metadata (REQ_META).
Split = Mapping[str, Traffic]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sectors:
    """Where file systems keep their journal and their superblocks: half-open ranges of sectors of 512 bytes."""

    journal: tuple[tuple[int, int], ...] = ()
    superblocks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RingFigures:
    """What the order of events tells. ``by_place`` splits written bytes into data, metadata, journal and superblock;
    ``sequential`` counts non-empty writes that begin where the one before ended; ``submitted`` are bytes
    by the name of the task that sent them; ``work_s`` is wall time of kernel work by function; ``commits_s`` are
    commits of the journal as (start, end) on the monotonic clock; ``sizes`` are non-empty writes by their bytes."""

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
    """One traced run. ``stat`` is what the block device itself counted meanwhile; ``idle_bytes`` what it wrote in
    ``idle_s`` before, when nothing should have. ``absent`` says what this kernel does not offer, and why."""

    method: TraceMethod | None
    split: Split
    stat: Split
    ring: RingFigures | None
    idle_bytes: int
    idle_s: float
    absent: tuple[str, ...] = field(default=())


def kind_of(rwbs: str) -> str:
    """The key in a :data:`Split` of the kernel's letters (include/trace/events/block.h): ``FWFSM`` is a write after a
    flush, with FUA, synchronous, of metadata: ``WM``."""
    letters = rwbs.removeprefix("F") if rwbs[1:2] in {"R", "W", "D"} else rwbs
    operation = letters[:1] if letters[:1] in {"R", "W", "D"} else "F"
    return operation + ("M" if "M" in rwbs else "")
