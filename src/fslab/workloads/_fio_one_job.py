"""Jobs of fio, a single one or those of a file, by their options: what each does, when and how long. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fslab.filesystem_abilities import Ability
from fslab.units import parse_duration
from fslab.workloads import Parameters, nearly_all_flushed
from fslab.workloads._fio_amounts import (
    DEFAULT_REQUEST_BYTES,
    FileSet,
    files_of,
    first,
    largest_request,
    number,
    one_pass,
    request_sizes,
    seconds,
    size_or_none,
)
from fslab.workloads._fio_options import HELD_BACK, NAME, directions, read_share, writes_through, writes_zeros


@dataclass(frozen=True, kw_only=True, slots=True)
class OneJob:
    """One job with all options that apply to it, by fio's names. None: an option without a value.

    ``section``: its name in the job file, after which fio names its files (add_job in fio's init.c), and ``place``:
    where that begins. ``label``: prefix of its metrics, empty for the only job. ``common``: the options of all jobs at
    its beginning.
    """

    section: str
    place: str = ""
    label: str = ""
    options: dict[str, str | None]
    common: Mapping[str, str | None] = field(default_factory=dict)

    def number(self, key: str, default: int) -> int:
        """Return the value of an option that is a whole number; 1 for an option without a value."""
        return number(self.options, key, default)

    @property
    def lines(self) -> tuple[str, ...]:
        """Its section in a job file."""
        options = (key if value is None else f"{key}={value}" for key, value in self.options.items())
        return (f"[{self.section}]", "new_group", *options)

    @property
    def name(self) -> str:
        """What other jobs and fio's report call it."""
        return self.options.get(NAME) or self.section

    @property
    def mode(self) -> str:
        """``rw`` without its offset modifier."""
        return (self.options.get("rw") or "read").partition(":")[0]

    @property
    def directions(self) -> tuple[str, ...]:
        """``read``, ``write`` or both."""
        return directions(self.mode, self.options)

    @property
    def random(self) -> bool:
        """Whether offsets are drawn at random."""
        return self.mode.startswith("rand")

    @property
    def held_back(self) -> bool:
        """Whether its options make it slower than the disk."""
        return not HELD_BACK.isdisjoint(self.options)

    @property
    def syncs(self) -> bool:
        """Whether fsync or fdatasync follows writes during the run."""
        return bool(self.number("fsync", 0) or self.number("fdatasync", 0))

    @property
    def kind(self) -> tuple[object, ...]:
        """What its rate is one of: random requests or not, of which sizes, direct or not, and how they are synced."""
        return self.random, self.request_bytes, self.direct, self.syncs, self._writes_through

    @property
    def _writes_through(self) -> bool:
        return writes_through(self.options.get("sync"), self.options.get("ioengine"))

    def flushed(self, writes: int) -> bool:
        """Return whether nearly all of what it wrote, with so many requests, reached the device within the run time:
        each process may leave as many requests as ``fsync`` allows. mmap ignores ``sync``. Direct writes never wait in
        memory."""
        if self.direct or self.number("end_fsync", 0) or self._writes_through:
            return True
        every = self.number("fsync", 0) or self.number("fdatasync", 0)
        return every > 0 and nearly_all_flushed(every * self.number("numjobs", 1), writes)

    @property
    def direct(self) -> bool:
        return bool(self.number("direct", 0))

    @property
    def abilities(self) -> frozenset[Ability]:
        """What its direct I/O needs."""
        of = {"read": Ability.DIRECT_READS, "write": Ability.DIRECT_WRITES}
        return frozenset(of[direction] for direction in self.directions if self.direct)

    @property
    def iodepth(self) -> int:
        return self.number("iodepth", 1)

    @property
    def engine(self) -> str:
        """Its I/O engine; psync is fio's default."""
        return self.options.get("ioengine") or "psync"

    @property
    def zeros(self) -> bool:
        return "write" in self.directions and writes_zeros(self.options)

    @property
    def request_bytes(self) -> tuple[int, ...]:
        """The sizes of reads and of writes."""
        return request_sizes(self.options)

    @property
    def files(self) -> tuple[tuple[str, FileSet], ...]:
        """Its files, each group with the name by which other jobs share it."""
        return tuple(files_of(self.section, self.options))

    @property
    def file_names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.files)

    @property
    def bytes(self) -> int:
        """How much its processes transfer in one pass over their files."""
        return one_pass(self.options) * self.number("numjobs", 1)

    @property
    def memory_bytes(self) -> int:
        """One buffer of the largest request for each request in flight."""
        return largest_request(self.options) * self.iodepth * self.number("numjobs", 1)

    # --- time ---

    @property
    def walled(self) -> bool:
        """Whether it waits for the end of all jobs that run, which also holds the jobs after it."""
        return self.options.get("stonewall", "0") != "0"

    @property
    def after(self) -> str | None:
        """The name of the job for whose end it waits."""
        return self.options.get("wait_for")

    @property
    def delay_s(self) -> float:
        """How long it waits from fio's own start on, at least: of a range, fio draws the time at random. Until then, it
        holds no other job, and a wall does not wait for it."""
        return seconds(self.options, "startdelay")

    @property
    def ramp_s(self) -> float:
        """How long it runs before fio measures."""
        return seconds(self.options, "ramp_time")

    @property
    def unreported(self) -> bool:
        """Whether fio leaves out some of the bytes that it transfers: those of the ramp time."""
        return not {"ramp_time", "ramp_size"}.isdisjoint(self.options)

    @property
    def runtime_s(self) -> float | None:
        """Time limit in seconds; None for a fixed amount of work."""
        written = self.options.get("runtime")
        return parse_duration(written) if written else None

    @property
    def timed(self) -> bool:
        return self.runtime_s is not None and self.options.get("time_based", "0") != "0"

    @property
    def ends_early(self) -> bool:
        """Whether fio may end it before its run time is over."""
        return not self.options.keys().isdisjoint({"steadystate", "exitall"})

    @property
    def block_bytes(self) -> int:
        """The size of one request, for estimates."""
        return first(self.options, "bs") or DEFAULT_REQUEST_BYTES

    @property
    def moved_bytes(self) -> int:
        """About how much one process transfers: the size of its files, or ``io_size``, times ``loops``; at most
        ``number_ios`` requests."""
        once = first(self.options, "io_size") or self.bytes // self.number("numjobs", 1)
        moved = once * (first(self.options, "loops") or 1)
        requests = first(self.options, "number_ios")
        return min(moved, requests * self.block_bytes) if requests else moved

    def work_s(self, bytes_per_s: float) -> float:
        """Return about how long it runs, at this rate of all its processes."""
        if self.timed and self.runtime_s is not None:
            return self.runtime_s + self.ramp_s
        moving_s = self.number("numjobs", 1) * self.moved_bytes / bytes_per_s
        run_s = max(moving_s, self.held_back_s)
        return (run_s if self.runtime_s is None else min(run_s, self.runtime_s)) + self.ramp_s

    @property
    def held_back_s(self) -> float:
        """The minimum duration that its rate limits and pauses cause. Of two limits, the first is that of reads, the
        second that of writes; a single one is of each."""
        requests = self.moved_bytes / self.block_bytes
        reads = read_share(self.mode, self.options)
        pauses = requests / (first(self.options, "thinktime_blocks") or 1)
        paces = [pauses * seconds(self.options, "thinktime", unit="us")]
        for key, amount in (("rate", self.moved_bytes), ("rate_iops", requests)):
            of_reads, comma, of_writes = (self.options.get(key) or "").partition(",")
            limits = (of_reads, of_writes.partition(",")[0] if comma else of_reads)
            for share, limit in zip((reads, 1 - reads), map(size_or_none, limits), strict=True):
                paces += [share * amount / limit] if limit else []
        return max(paces)


class JobParameters(Parameters):
    """Parameters that yield jobs."""

    @property
    def jobs(self) -> tuple[OneJob, ...]:
        raise NotImplementedError


def all_files(jobs: Iterable[OneJob]) -> FileSet:
    """Return the files of all jobs. Files that several jobs share count once, with their largest size."""
    found: dict[str, FileSet] = {}
    for job in jobs:
        for name, files in job.files:
            known = found.get(name, files)
            found[name] = FileSet(count=max(known.count, files.count), bytes=max(known.bytes, files.bytes))
    return FileSet(
        count=sum(each.count for each in found.values()), bytes=sum(each.bytes for each in found.values())
    )


def phases(jobs: Sequence[OneJob]) -> tuple[int, ...]:
    """Return a number for each job, counted from 1. Jobs with the same number are measured from the same time on: as
    fio starts them (run_threads in its backend.c)."""
    known: dict[tuple[object, ...], int] = {}
    walls, found = 0, []
    for index, job in enumerate(jobs):
        walls += job.walled and index > 0
        alone = index if "-" in (job.options.get("startdelay") or "") else None
        key = (walls, job.after, job.delay_s, job.ramp_s, alone)
        found.append(known.setdefault(key, len(known) + 1))
    return tuple(found)


def spans(jobs: Sequence[OneJob], durations_s: Sequence[float]) -> list[tuple[float, float]]:
    """Return when each job is measured, in seconds from fio's own start. ``durations_s``: without its ramp time."""
    found: dict[int, tuple[float, float]] = {}
    now = 0.0
    while True:
        for index in (index for index in range(len(jobs)) if index not in found):
            job = jobs[index]
            if job.delay_s > now:
                continue
            if job.walled and any(end > now for _, end in found.values()):
                break
            if not _awaits(index, jobs, found, now):
                begin = now + job.ramp_s
                found[index] = (begin, begin + durations_s[index])
        if len(found) == len(jobs):
            return [found[index] for index in range(len(jobs))]
        ends = (end for _, end in found.values())
        now = min(at for at in (*ends, *(job.delay_s for job in jobs)) if at > now)


def _awaits(index: int, jobs: Sequence[OneJob], found: Mapping[int, tuple[float, float]], now: float) -> bool:
    """Return whether a job before this one that it waits for (``wait_for``) has not ended."""
    before = (place for place in range(index) if jobs[place].name == jobs[index].after)
    return any(place not in found or found[place][1] > now for place in before)


def reported_spans(
    jobs: Sequence[OneJob], reports: Sequence[Mapping[str, Any]], used: Sequence[str]
) -> list[tuple[float, float]]:
    """Return when each job was measured in the ``used`` directions, in seconds: as fio 3.35 and newer report it, else
    in the order of starts."""
    durations_s = [max(float(report[name]["runtime"]) for name in used) / 1000 for report in reports]
    if not all("job_start" in report for report in reports):
        return spans(jobs, durations_s)
    begins = (float(told["job_start"]) / 1000 + job.ramp_s for job, told in zip(jobs, reports, strict=True))
    return [(begin, begin + lasts) for begin, lasts in zip(begins, durations_s, strict=True)]


def covered_s(found: Iterable[tuple[float, float]]) -> float:
    """Return the time in which at least one job ran."""
    total, last = 0.0, float("-inf")
    for begin, end in sorted(found):
        total += max(end - max(begin, last), 0.0)
        last = max(last, end)
    return total


def together_s(found: Sequence[tuple[float, float]]) -> float | None:
    """Return the time from the first start to the last end; None if at no time all of the jobs ran."""
    begins, ends = zip(*found, strict=True)
    return float(max(ends) - min(begins)) if max(begins) < min(ends) else None
