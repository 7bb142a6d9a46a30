"""The contract of a probe: reads one kernel source around a trial. One file per source.

A probe only reads, and must cost far less than the run.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from fslab.record import Value
from fslab.registry import Registry
from fslab.system.proc import Usage


class SnapshotMoment(StrEnum):
    """When a snapshot is taken.

    ``before``: the stack is up, prepared, and all dirty data has been flushed. ``end``: the tool just
    ended. ``synced``: syncfs(2) returned, still mounted. ``flushed``: everything dirty has reached the device
    (unmounted as well; the device is still there).
    """

    BEFORE = "before"
    END = "end"
    SYNCED = "synced"
    FLUSHED = "flushed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What is watched: the block devices under the file system (kernel names such as ``loop3``), its
    mount type and its mount point. ``volume`` is the kernel name of the device that the file system was made on:
    that of a layout, where there is one. ``thorough``: there is time for more than a few milliseconds. ``sys`` and
    ``proc`` are where the kernel's trees are."""

    devices: tuple[str, ...]
    filesystem: str | None
    directory: Path
    volume: str | None = None
    thorough: bool = False
    sys: Path = Path("/sys")
    proc: Path = Path("/proc")


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What the workload did meanwhile: application bytes (None: unknown), wall seconds of the tool and of
    what it measured (None: it does not say), its own resource usage, whether it asked for direct I/O, and
    whether the cache was cold (else it was warm)."""

    read_bytes: int | None
    written_bytes: int | None
    duration_s: float
    measured_s: float | None
    usage: Usage
    direct: bool
    cold: bool


Snapshot = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeFinding:
    """Derived values with units; ``texts`` are lines or names that the source gave, for the rules of ``validity``
    to judge: a probe itself judges nothing."""

    values: Mapping[str, Value]
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Probe(ABC):
    """One kernel source. ``name`` is set by the registry from the file's name.

    An ``outermost`` one takes time of its own: it is the first before the run and the last after it.
    """

    outermost: ClassVar[bool] = False
    name: str
    summary: ClassVar[str]
    moments: ClassVar[tuple[SnapshotMoment, ...]]

    @abstractmethod
    def snapshot(self, target: Target) -> Snapshot:
        """Raw counters now; keys are the probe's own.

        OSError or ValueError: the source should exist but does not; this is recorded. If many machines lack the
        source, leave its counters out instead, so that its figures are unknown.
        """

    @abstractmethod
    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:
        """What the difference between the snapshots means. Pure."""


REGISTRY: Registry[Probe] = Registry("probe", __name__, Probe, group="fslab.probes")
