"""What the rules judge: plain frozen values that workloads, probes and the trial hand over.

Unknown is None; a rule that lacks what it needs says nothing. Computes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fslab.record import Value


@dataclass(frozen=True, kw_only=True, slots=True)
class Depth:
    """Requests in flight: asked for, and the mean that was reached, as closely as the tool tells."""

    asked: int
    at_least: float
    at_most: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """How fast it went over the run: one value per interval, in any unit, whole intervals only.

    ``what`` names it in a message: ``write bandwidth``.
    """

    what: str
    interval_s: float
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkFacts:
    """What a tool's output and parameters say of how it worked.

    ``read_bytes`` and ``written_bytes`` are what the application moved; ``measured_s`` is the time its figures
    are taken over, ``parts_s`` that of each operation with a figure of its own. ``asked_s`` is how long it was
    told to measure; None: it had a set amount of work, and the time is the outcome. ``direct``: it asked to
    bypass the page cache. ``working_set_bytes``: the data that it works on. ``flushed``: whether what it wrote
    had reached the device when its time was taken. ``passes``: how often it wrote files over that only the
    first pass makes. ``queue_in_tool``: its depth is a queue of its own that the kernel never sees. ``errors``
    counts by operation what failed and was passed over; ``wrong`` maps a key of its answer to (found, true);
    ``messages`` is what the tool itself warns of.
    ``promises_broken``: what a power cut broke, in words; ``mounts_damaged``: it mounts file systems of its own that
    may be damaged, of which the kernel complains. ``disk_fails``: it cuts the power of the disk under test, or lets it
    return errors, and says itself what is wrong afterwards.
    """

    read_bytes: int | None = None
    written_bytes: int | None = None
    measured_s: float | None = None
    parts_s: Mapping[str, float] = field(default_factory=dict)
    asked_s: float | None = None
    direct: bool = False
    working_set_bytes: int | None = None
    flushed: bool | None = None
    passes: float | None = None
    depth: Depth | None = None
    queue_in_tool: bool = False
    rates: tuple[Rate, ...] = ()
    errors: Mapping[str, int] = field(default_factory=dict)
    wrong: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    promises_broken: tuple[str, ...] = ()
    mounts_damaged: bool = False
    disk_fails: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeFailure:
    """A probe that could not read its source."""

    probe: str
    moment: str
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialFacts:
    """Everything that is known of one trial.

    ``figures`` are those of all probes by name, as they are stored; ``texts`` lines that probes read, by name.
    ``cold``: the study wants a cold cache, else a warm one; ``caches_dropped``: whether the whole of it could
    be. ``devices`` are the kernel's names of what lies under the file system. ``remade``: a file system that
    should have lived on was lost. ``medium_buffered``: a medium goes through a page cache although it was to be
    direct. ``volume_bytes`` is how large the file system is, ``fair_volume_bytes`` from what size on it may be judged.
    ``machine`` is where it ran, ``accelerator`` what a guest's processor is made by, None if that is not a matter.
    ``disk_limits``: ``iops`` and ``bytes_per_s`` that a guest's kernel kept the disks to. ``disk_profile``:
    the disk that a virtual one stands for; ``disk_speed``: how many times faster than its model it ran;
    ``disk_fidelities``: what was measured of the way to each.
    """

    work: WorkFacts
    cold: bool
    figures: Mapping[str, Value] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    cpus: int | None = None
    memory_bytes: int | None = None
    caches_dropped: bool = True
    remade: bool = False
    filesystem: str | None = None
    medium_buffered: bool = False
    volume_bytes: int | None = None
    fair_volume_bytes: int | None = None
    probe_failures: tuple[ProbeFailure, ...] = ()
    machine: str = "host"
    accelerator: str | None = None
    disk_limits: Mapping[str, int] = field(default_factory=dict)
    disk_profile: str | None = None
    disk_speed: float = 1.0
    disk_fidelities: tuple[Mapping[str, Any], ...] = ()

    def figure(self, name: str) -> float | None:
        """A probe's figure; None where it is unknown or the probe was not there."""
        value = self.figures.get(name)
        return None if value is None else value.value

    def known(self, name: str) -> float:
        """A figure that the rule ``needs``; LookupError where it is unknown."""
        value = self.figure(name)
        if value is None:
            raise LookupError(f"{name} is unknown: name it in the rule's 'needs'")
        return value
