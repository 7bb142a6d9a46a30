"""The facts that the rules check: plain frozen values from workloads, probes and the trial.

An unknown value is None. A rule without the facts that it needs gives no warning. This module computes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fslab.trial_record import Value


@dataclass(frozen=True, kw_only=True, slots=True)
class Depth:
    """The queue depth: as requested, and bounds of the mean that was reached, as precisely as the tool reports it."""

    asked: int
    at_least: float
    at_most: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """A rate over the run: one value per complete interval, in any unit.

    ``what`` is its name in a message, such as ``write bandwidth``.
    """

    what: str
    interval_s: float
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkFacts:
    """How a tool worked, from its output and its parameters.

    ``read_bytes``, ``written_bytes``: bytes that the application read and wrote. ``measured_s``: the time over which
    its figures are computed; ``parts_s``: the same for each operation that has its own figure. ``asked_s``: how long
    the tool was to measure; None: it had a fixed amount of work, and the time is the result. ``direct``: the tool uses
    direct I/O. ``working_set_bytes``: size of the data that it accesses. ``rounds``: how often it did its work, each
    time with other files of that size; the bytes are those of all rounds. ``flushed``: whether the written data had
    reached the device when the time was taken. ``zeros``: it, or a job of it, writes nearly only zeros.
    ``repeats``: it, or a job of it, writes nearly the same buffer again and again. ``passes``: how often the tool wrote
    its files; only the first pass allocates them. ``queue_in_tool``: the queue depth is that of the tool's own queue,
    which the kernel does not have. ``errors``: number of failed and skipped operations by name. ``wrong``: (found,
    true) by key of the tool's answer. ``messages``: the tool's own warnings. ``promises_broken``: what a power cut
    broke, in words. ``mounts_damaged``: the tool mounts other file systems that may be damaged, and the kernel logs
    errors about them. ``drops``: how often the tool itself dropped the machine's caches; None: unknown.
    ``disk_fails``: the tool cuts the power of the disk under test, or makes it return errors, and itself reports what
    is wrong afterwards.
    ``sliced``: it took turns with others, and the times are those in which it ran, without its start. ``left_share``:
    the share of what it wrote that reached its disks in the slices of others; None if it wrote little.
    ``together_share``: the share of the measured time before it was first frozen, while the others ran too.
    """

    read_bytes: int | None = None
    written_bytes: int | None = None
    measured_s: float | None = None
    parts_s: Mapping[str, float] = field(default_factory=dict)
    asked_s: float | None = None
    direct: bool = False
    working_set_bytes: int | None = None
    rounds: int = 1
    flushed: bool | None = None
    zeros: bool = False
    repeats: bool = False
    passes: float | None = None
    depth: Depth | None = None
    queue_in_tool: bool = False
    rates: tuple[Rate, ...] = ()
    errors: Mapping[str, int] = field(default_factory=dict)
    wrong: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    promises_broken: tuple[str, ...] = ()
    mounts_damaged: bool = False
    drops: int | None = 0
    disk_fails: bool = False
    sliced: bool = False
    left_share: float | None = None
    together_share: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeFailure:
    probe: str
    moment: str
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialFacts:
    """All facts about one trial.

    ``figures``: stored figures of all probes, by name. ``texts``: lines read by probes, by name. ``cold``: the study
    asks for a cold cache, else for a warm one. ``caches_dropped``: whether dentries and inodes could be dropped too.
    ``devices``: the kernel's names of the devices below the file system. ``remade``: a file system that should have
    been kept was lost. ``image_filesystem``: what the images of its disks lie on, unless the medium is one in memory;
    None: there are none. ``medium_buffered``: the medium uses a page cache although direct I/O was requested.
    ``changed_options``: mount options that are not in effect as the study asks: what the kernel lists instead, or
    None if it lists nothing, or ignores them. ``ignored_options``: names of options that it ignores, and the reason
    (``with nodatasum``). ``volume_bytes``: size of the file system. ``fair_volume_bytes``: smallest size at which
    comparing this file system is fair. ``machine``: type of the machine that ran the trial. ``accelerator``: how a
    guest's processor is provided; None if this does not apply. ``disk_speed``: how many times faster than its model a
    virtual disk ran. ``disk_faults``: the study makes the disk fail. ``disk_fidelities``: for each virtual disk, the
    measured time to reach it. ``syncs``: calls of fsync and fdatasync by the tool, whose ``threads`` worked at once;
    None: unknown. ``caches_writes``: the kernel flushes the disk's cache.
    """

    work: WorkFacts
    cold: bool
    figures: Mapping[str, Value] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    cpus: int | None = None
    memory_bytes: int | None = None
    memory_limited: bool = False
    caches_dropped: bool = True
    remade: bool = False
    filesystem: str | None = None
    image_filesystem: str | None = None
    medium_buffered: bool = False
    changed_options: Mapping[str, str | None] = field(default_factory=dict)
    ignored_options: Mapping[str, str] = field(default_factory=dict)
    volume_bytes: int | None = None
    fair_volume_bytes: int | None = None
    probe_failures: tuple[ProbeFailure, ...] = ()
    machine: str = "host"
    accelerator: str | None = None
    disk_speed: float = 1.0
    disk_faults: bool = False
    disk_fidelities: tuple[Mapping[str, Any], ...] = ()
    syncs: float | None = None
    threads: int = 1
    caches_writes: bool = False

    def figure(self, name: str) -> float | None:
        """Return a probe's figure; None if it is unknown or the probe was not used."""
        value = self.figures.get(name)
        return None if value is None else value.value
