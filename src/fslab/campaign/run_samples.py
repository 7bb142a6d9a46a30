"""Samples while the tool of a trial runs: its CPU time, its disks, and how busy the CPUs are; cut by the tool's parts.

From them follow the facts of each part of a run: how long the tool waited for its disks, and what went there. Samples
are some 250 ms apart, and between two of them everything is taken as even. Takes no figure of the tool's.
"""

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from fslab.campaign.time_slices import Timeline
from fslab.probes import REGISTRY as PROBES
from fslab.probes import Snapshot, Target, Transactions
from fslab.system import proc, processes
from fslab.trial_record import WHOLE, RunPart
from fslab.workloads import Reading

EVERY_S = 0.25
# Parts whose windows are shorter cannot be told from what is beside them.
_RESOLVED_S = EVERY_S / 2
# Parts without windows follow each other, if they are nearly all of the run.
_NEARLY_ALL = 0.75
_ROUNDING = 1.02
SECTOR_BYTES = 512

Window = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSample:
    """What was counted until ``at_s`` (``time.monotonic``). Sums over all disks, and over all CPUs; None: unknown.

    ``said``: bytes of its standard error. ``cpu_s``, ``queued_s``: of the tool's processes. ``io_s``: time in which the
    disks had requests. ``idle``, ``all``: ticks of the CPUs.
    """

    at_s: float
    said: float = 0.0
    cpu_s: float | None = 0.0
    queued_s: float | None = 0.0
    read_bytes: float | None = None
    written_bytes: float | None = None
    flushes: float | None = None
    io_s: float | None = None
    idle: float | None = None
    all: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """What is known of a run that has ended. ``threads``: how many work at once; None: unknown. ``timeline``: when the
    tool ran, if it took turns."""

    reading: Reading
    done: proc.Completed
    threads: int | None = 1
    timeline: Timeline | None = None


@dataclass(kw_only=True, slots=True)
class RunSamples:
    """The samples of one run. ``of_machine``: also those of the CPUs, which other trials may use at the same time.
    ``counted``: the kernel counts all CPU time of the tool's processes."""

    of_machine: bool = True
    counted: bool = True
    taken: list[RunSample] = field(default_factory=list)
    cpus: int | None = None

    def begin(self, target: Target) -> None:
        """Take the sample before the tool starts."""
        self.taken = [self._sample(target)]

    def look(self, target: Callable[[], Target], running: proc.Running) -> None:
        """Take a sample, unless the last one is new and the tool has told nothing since. Call it often."""
        if not self.taken:
            return
        said = running.said_bytes()
        if said > self.taken[-1].said or time.monotonic() - self.taken[-1].at_s >= EVERY_S:
            times = processes.times(running.pid)
            if times is not None:
                self.counted &= times.counted
                found = replace(self._sample(target()), said=said, cpu_s=times.cpu_s, queued_s=times.queued_s)
                self.taken.append(found)

    def end(self, target: Target) -> None:
        """Take the sample after the tool has ended. Its CPU time is known to who reaped it."""
        if self.taken:
            self.taken.append(replace(self._sample(target), said=math.inf, cpu_s=None, queued_s=None))

    def usage(self, done: proc.Completed) -> proc.Usage | None:
        """Return what the tool used; None if the kernel did not count all of it."""
        return done.usage if self.counted else None

    def parts(self, ran: Ran) -> dict[str, RunPart]:
        """Return the facts of the whole run, and of each of the tool's parts."""
        if len(self.taken) < 2:
            return {}
        counted, reading, threads = self._counted(ran.done), ran.reading, ran.threads
        ran_s = ran.timeline.ran_s if ran.timeline else _length_s
        found = {WHOLE: _part(counted, [self._span()], ran_s, threads, self.cpus)}
        for name, windows in self._windows(reading, sliced=ran.timeline is not None).items():
            part = _part(counted, windows, ran_s, threads, self.cpus, cpu_s=reading.part_cpu_s.get(name))
            found[name.replace("-", "_")] = part
        return found

    def busy_percent(self, reading: Reading) -> float | None:
        """Return the share of all CPUs' time that was busy while the tool measured.

        Where it is unknown when that was, it was at the end of the run: before, a tool starts.
        """
        if not self.of_machine or len(self.taken) < 2:
            return None
        began_s, ended_s = self._span()
        parts = self._windows(reading, sliced=False)
        windows = [window for each in parts.values() for window in each]
        if not windows and reading.measured_s is not None:
            windows = [(max(began_s, ended_s - reading.measured_s), ended_s)]
        grown = [(_grown(self.taken, "idle", *one), _grown(self.taken, "all", *one)) for one in windows]
        if not windows or any(None in one for one in grown):
            grown = [
                (_grown(self.taken, "idle", began_s, ended_s), _grown(self.taken, "all", began_s, ended_s))
            ]
        idle, whole = (sum(each or 0.0 for each in column) for column in zip(*grown, strict=True))
        return 100 * (1 - min(idle / whole, 1.0)) if whole > 0 else None

    def transactions(self, reading: Reading) -> Transactions | None:
        """Return the transactions of an application, without what its start did; None without any."""
        if reading.transactions is None or len(self.taken) < 2:
            return None
        began_s, ended_s = reading.part_windows.get(WHOLE, self._span())
        return Transactions(
            count=reading.transactions,
            bytes_before=_grown(self.taken, "written_bytes", self._span()[0], began_s),
            flushes=_grown(self.taken, "flushes", began_s, ended_s),
        )

    def _windows(self, reading: Reading, *, sliced: bool) -> dict[str, list[Window]]:
        """Return when each part of the run was: as the tool reports it or tells meanwhile, or else one after the other.

        Of a single part, nothing: it is the run.
        """
        if reading.part_rounds:
            return {name: list(windows) for name, windows in reading.part_rounds.items()}
        if reading.part_windows:
            return {name: [window] for name, window in reading.part_windows.items()}
        if reading.marks:
            return {
                name: [(self._told(begin), self._told(end))] for name, (begin, end) in reading.marks.items()
            }
        return {} if sliced else _in_order(reading, self._span())

    def _told(self, offset: int) -> float:
        """Return when the tool had written this offset of its standard error."""
        return next(sample.at_s for sample in self.taken if sample.said >= offset)

    def _span(self) -> Window:
        return self.taken[0].at_s, self.taken[-1].at_s

    def _counted(self, done: proc.Completed) -> list[RunSample]:
        """Return the samples with the CPU time of all of the run. The time on run queues since the last sample before
        the end is taken to be in the same proportion to CPU time as before; it is unknown without such a sample."""
        usage = self.usage(done)
        if usage is None:
            return [replace(sample, cpu_s=None, queued_s=None) for sample in self.taken]
        before, last = self.taken[-2:]
        used_s = before.cpu_s or 0.0
        cpu_s = max(usage.user_s + usage.system_s, used_s)
        queued_s = last.queued_s
        if queued_s is None and before.queued_s is not None and used_s > 0:
            queued_s = before.queued_s * cpu_s / used_s
        return [*self.taken[:-1], replace(last, cpu_s=cpu_s, queued_s=queued_s)]

    def _sample(self, target: Target) -> RunSample:
        at_s = time.monotonic()
        disks = _read("block-device", target)
        cpu = _read("cpu", target) if self.of_machine else None
        self.cpus = cpu["cpus"] if cpu else self.cpus
        return RunSample(
            at_s=at_s,
            read_bytes=_sum(disks, "read_sectors", SECTOR_BYTES),
            written_bytes=_sum(disks, "write_sectors", SECTOR_BYTES),
            flushes=_sum(disks, "flush_requests"),
            io_s=_sum(disks, "busy_ms", 1e-3),
            idle=None if cpu is None else cpu["idle"] + cpu["iowait"],
            all=None if cpu is None else sum(ticks for name, ticks in cpu.items() if name != "cpus"),
        )


def _read(probe: str, target: Target) -> Snapshot | None:
    try:
        return PROBES.get(probe).snapshot(target)
    except (OSError, ValueError):  # the probe's own snapshots record it
        return None


def _sum(disks: Snapshot | None, name: str, scale: float = 1.0) -> float | None:
    counts = [counters.get(name) for counters in disks.values()] if disks else []
    return None if not counts or None in counts else sum(counts) * scale


def _length_s(begin_s: float, end_s: float) -> float:
    return max(0.0, end_s - begin_s)


def _in_order(reading: Reading, span: Window) -> dict[str, list[Window]]:
    """Return the parts one after the other, if they are nearly all of the run."""
    total_s, run_s = sum(reading.parts_s.values()), span[1] - span[0]
    nearly_all = _NEARLY_ALL * run_s <= total_s <= _ROUNDING * run_s
    if len(reading.parts_s) < 2 or reading.rounds > 1 or not nearly_all:
        return {}
    gap_s = max(0.0, run_s - total_s) / (len(reading.parts_s) + 1)
    found, at_s = {}, span[0]
    for name, took_s in reading.parts_s.items():
        found[name] = [(at_s + gap_s, at_s + gap_s + took_s)]
        at_s += gap_s + took_s
    return found


def _part(
    samples: Sequence[RunSample], windows: Sequence[Window], ran_s: Callable[[float, float], float],
    threads: int | None, cpus: int | None, *, cpu_s: float | None = None,
) -> RunPart:  # fmt: skip
    """Return the facts of a part. ``cpu_s``: the tool's CPU time, if the tool reports it for this part.

    The tool waits for its disks while it neither runs nor waits for a CPU, while they have requests, and, on one CPU,
    while that is idle: otherwise it waits for the kernel's threads. Unknown where a part is too short for the samples,
    and without the number of ``threads``: with a smaller one, their waiting would not be seen.
    """
    seconds = sum(ran_s(*window) for window in windows)
    resolved = seconds >= _RESOLVED_S * len(windows)
    grown = {name: _total(samples, name, windows) if resolved else None for name in _COUNTED}
    used_s = cpu_s if cpu_s is not None else grown["cpu_s"]
    queued_s, io_s, wait = grown["queued_s"], grown["io_s"], None
    if threads is not None and used_s is not None and queued_s is not None and io_s is not None:
        limits = [max(0.0, seconds * threads - used_s - queued_s), io_s * threads]
        if cpus == 1 and grown["all"]:
            limits.append(seconds * threads * (grown["idle"] or 0.0) / grown["all"])
        slept_s = min(limits)
        if seconds > 0 and used_s + slept_s > 0:
            at_once = min(
                threads, cpus or threads
            )  # without any waiting, it would take as long as its CPU time does
            wait = max(0.0, min(slept_s / (used_s + slept_s), 1 - used_s / (seconds * at_once)))
    counts = {name: grown[name] for name in ("read_bytes", "written_bytes", "flushes")}
    return RunPart(
        seconds=seconds,
        wait=wait,
        cpu_s=used_s,
        **{name: None if count is None else round(count) for name, count in counts.items()},
    )


_COUNTED = ("cpu_s", "queued_s", "read_bytes", "written_bytes", "flushes", "io_s", "idle", "all")


def _total(samples: Sequence[RunSample], name: str, windows: Sequence[Window]) -> float | None:
    grown = [_grown(samples, name, *window) for window in windows]
    return None if None in grown else sum(each or 0.0 for each in grown)


def _grown(samples: Sequence[RunSample], name: str, begin_s: float, end_s: float) -> float | None:
    """Return by how much a counter grew between two times; None if it is unknown or was reset."""
    first, last = (_at(samples, name, at_s) for at_s in (begin_s, end_s))
    return None if first is None or last is None else max(0.0, last - first)


def _at(samples: Sequence[RunSample], name: str, at_s: float) -> float | None:
    """Return a counter at a time between two samples."""
    after = min(max(bisect_right(samples, at_s, key=lambda sample: sample.at_s), 1), len(samples) - 1)
    one, other = samples[after - 1], samples[after]
    low, high = getattr(one, name), getattr(other, name)
    if low is None or high is None:
        return None
    share = (at_s - one.at_s) / (other.at_s - one.at_s) if other.at_s > one.at_s else 1.0
    return float(low + (high - low) * min(max(share, 0.0), 1.0))
