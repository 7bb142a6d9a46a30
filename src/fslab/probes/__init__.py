"""The contract of a probe: it reads one kernel source before and after a trial. One file per source.

A probe only reads, and must cost far less than the run.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from fslab.registry import Registry
from fslab.system import sysfs
from fslab.system.proc import Usage
from fslab.trial_record import Value
from fslab.units import Unit


class SnapshotMoment(StrEnum):
    """When a snapshot is taken.

    ``before``: the stack is ready, and all dirty data has been flushed. ``end``: the tool has just ended. ``synced``:
    syncfs(2) has returned; the file system is still mounted. ``flushed``: all dirty data has reached the device; the
    file system is unmounted, the device still exists.
    """

    BEFORE = "before"
    END = "end"
    SYNCED = "synced"
    FLUSHED = "flushed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a probe observes: the block devices under the file system (kernel names such as ``loop3``), its mount
    type (None: there is no file system) and its mount point. ``volume`` is the kernel name of the device that the
    file system was made on, which is the layout's device if there is one. ``empty_bytes``: what was in use on the
    file system before the workload had files; None if that is not known. ``below``: the devices on which these lie.
    ``others_in_log``: how the kernel's messages about other file systems begin. ``mark``: of the campaign's
    processes. ``thorough``: a snapshot may take more than a few milliseconds. ``sys`` and ``proc`` are the mount
    points of sysfs and procfs."""

    devices: tuple[str, ...]
    filesystem: str | None
    directory: Path
    volume: str | None = None
    below: tuple[str, ...] = ()
    others_in_log: tuple[str, ...] = ()
    empty_bytes: int | None = None
    mark: str = ""
    thorough: bool = False
    sys: Path = Path("/sys")
    proc: Path = Path("/proc")


@dataclass(frozen=True, kw_only=True, slots=True)
class Transactions:
    """How many an application committed or read, the bytes that its disks had received before the first one, and the
    flushes of their caches from then until the last one (None: unknown)."""

    count: int
    bytes_before: float | None
    flushes: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What the workload did between the snapshots: application bytes (None: unknown), wall seconds of the tool and of
    the part that it measured (None: unknown), its own resource usage, whether it requested direct I/O, and whether the
    cache was cold (else it was warm). ``transactions``: those of an application."""

    read_bytes: int | None
    written_bytes: int | None
    duration_s: float
    measured_s: float | None
    usage: Usage | None
    direct: bool
    cold: bool
    transactions: Transactions | None = None


Snapshot = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeFinding:
    """Derived values with units. ``texts`` are lines or names from the source. The rules of ``validity`` judge them;
    a probe judges nothing."""

    values: Mapping[str, Value]
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Probe(ABC):
    """One kernel source. The registry sets ``name`` from the file's name.

    An ``outermost`` probe takes a noticeable time: it is the first before the run and the last after it. One
    ``of_machine`` reads what the whole machine does: it is left out while the tools of other trials take turns with
    this one.
    """

    outermost: ClassVar[bool] = False
    of_machine: ClassVar[bool] = False
    name: str
    summary: ClassVar[str]
    moments: ClassVar[tuple[SnapshotMoment, ...]] = (SnapshotMoment.BEFORE, SnapshotMoment.END)

    @abstractmethod
    def snapshot(self, target: Target) -> Snapshot:
        """Return the raw counters at this moment. Each probe has its own keys.

        OSError or ValueError: the source should exist but does not; this is recorded. If many machines lack the
        source, leave its counters out instead, so that its figures are unknown.
        """

    @abstractmethod
    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:
        """Compute figures from the differences between the snapshots. Pure."""


REGISTRY: Registry[Probe] = Registry("probe", __name__, Probe, group="fslab.probes")


def figures(unit: Unit, **values: float | None) -> dict[str, Value]:
    """Return figures of one unit by name."""
    return {name: Value(value=value, unit=unit) for name, value in values.items()}


def grown(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    name: str,
    unit: Unit = Unit.COUNT,
    *,
    scale: float = 1,
) -> Value:
    """Return the growth of a counter; None if it is missing or was reset (by a new mount)."""
    first, last = before.get(name), after.get(name)
    if first is None or last is None or last < first:
        return Value(value=None, unit=unit)
    return Value(value=(last - first) * scale, unit=unit)


def btrfs_directory(target: Target) -> Path | None:
    """Return ``/sys/fs/btrfs/UUID`` of the file system; None if it is not btrfs."""
    return sysfs.btrfs_directory({*target.devices, target.volume}, target.sys)
