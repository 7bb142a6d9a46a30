"""fio with one job per workload, by fio's own option names.

Builds the fio commands and parses their JSON; starts no process. All options of the job are on the command line, so
that users can copy and run it.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from fslab import scaling
from fslab.cell import Scalar
from fslab.filesystem_abilities import Ability, Needs
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Direction, Unit, parse_size
from fslab.workloads import (
    SECTOR_BYTES,
    Check,
    Commands,
    Job,
    Reading,
    Switchable,
    ToolOutput,
    Traits,
    Workload,
    _fio_amounts,
    _fio_rates,
    _fio_time,
)
from fslab.workloads._fio_options import CONTENT, LEFT_OUT, OF_FILES, repeats_data
from fslab.workloads._fio_output import (
    declared,
    depth,
    depth_bounds,
    figures,
    job_of,
    latencies,
    sync_count,
)
from fslab.workloads._fio_parameters import FioParameters
from fslab.workloads._fio_places import one_file

# Where it finds a file fio-dump-status, it writes figures so far, as if they were its report (fio, helper_thread.c).
FIO = Tool(program="fio", package="fio", own_temporary=True)
REPORT = "fio.json"
# fio (since 3.8) then reads its jobs, sets them up, and ends before it touches a file ("don't start any I/O").
# With --parse-only it would end before it compares options with each other and looks for the I/O engine.
CHECK = ("fio", "--merge-blktrace-only")
OPERATIONS = "fio_lat.log"  # fio's file name for --write_lat_log=fio if all jobs share a log
_LAYOUT_BYTES = 1 << 20  # of each write, as large as the region allows
# What the files of a job do not depend on (fio 3.33, filesetup.c); jobs that read lay out their files whole.
_OF_THE_RUN = frozenset(
    {
        "rw", "iodepth", "direct", "rwmixread", "runtime", "time_based", "overwrite", "fsync", "fdatasync",
        "end_fsync", "invalidate",
    }
)  # fmt: skip

# Only for the estimate of a plan; measured on a virtual disk in 2026.
_LAYOUT_BYTES_PER_S = 300e6
_GUESSED_BYTES_PER_S = 1e9
_GUESSED_IOPS = 20e3
_STARTUP_S = 0.5
# Options that limit how many requests there are at once: fio(1), "I/O rate" and "I/O latency". The queue depth is then
# what fits into it.
PACED = frozenset({"thinktime", "rate", "rate_iops", "latency_target", "flow"})
# Options that delay or limit requests by the clock: also "Time related parameters".
_BY_THE_CLOCK = PACED | {
    "ramp_time", "startdelay", "thinktime_iotime", "rate_min", "rate_iops_min", "max_latency", "unlink_each_loop",
}  # fmt: skip


class FioJob(Workload[FioParameters]):
    """One fio job over its own files.

    Files that are read or written in place are laid out, fully written, before the measured run. Sequential writes make
    new files (``fallocate=none``: writing allocates, and there are no unwritten extents that the run would convert).
    Buffered writes end with an fsync that fio includes in the run time. ``randseed`` requires ``randrepeat=0``: fio
    3.33 ignores the seed otherwise. fio drops its files from the page cache first (``invalidate``), unless the study
    requires a warm cache.
    """

    summary = "fio, the flexible I/O tester: sequential, random and mixed I/O at any queue depth"
    tools: ClassVar[tuple[Tool, ...]] = (FIO,)
    Parameters = FioParameters

    def metrics(self, parameters: FioParameters) -> tuple[Metric, ...]:
        """Return rates and latencies of each direction in use, those of fsync if requested, CPU and queue depth."""
        reached = Metric(name="achieved_depth", unit=Unit.COUNT, better=Direction.NEITHER)
        first = self.headline(parameters)
        return tuple(
            sorted([*declared(parameters.one), reached], key=lambda metric: metric.name not in first)
        )

    def headline(self, parameters: FioParameters) -> tuple[str, ...]:
        """Return IOPS for random jobs, bandwidth for sequential jobs. Both contain the time of fsync; with slices, its
        latency is often unknown."""
        rate = "iops" if parameters.one.random else "bandwidth"
        return tuple(f"{direction}_{rate}" for direction in parameters.one.directions)

    def commands(self, parameters: FioParameters, job: Job) -> Commands:
        """Return the job, and before it ``fio --create_only=1`` if files must exist."""
        values = _values(parameters, job)
        options = _argv(values)
        report = ("--group_reporting=1", "--output-format=json", f"--output={job.scratch / REPORT}")
        layout = (_layout(parameters, job, values),) if parameters.laid_out else ()
        made = Commands(prepare=layout, run=(*options, *report), outputs=(REPORT,), prepared=())
        if job.each_operation:
            log = (*_operations_log(job), *report)
            return replace(made, run=(*options, *log), operations=OPERATIONS)
        rates = _fio_rates.log_options(parameters.one, job.scratch)
        logs = _fio_rates.logs_of([parameters.one])
        return replace(made, run=(*_argv({**values, **rates}), *report), outputs=(REPORT, *logs))

    def checks(self, parameters: FioParameters, job: Job) -> tuple[Check, ...]:
        return (Check(argv=(*CHECK, *_argv(_values(parameters, job))[1:])),)

    def read(self, parameters: FioParameters, output: ToolOutput) -> Reading:
        """Parse the figures of the job. NoSpaceError or ToolFailedError if fio reports that it failed."""
        return _reading(parameters, output)

    def needs(self, parameters: FioParameters) -> Needs:
        """Return the need for direct I/O in use, for fallocate if fio has no fallback, and for its largest file."""
        # native falls back to no preallocation, and posix to writing: fio(1), "fallocate".
        kept = {Ability.FALLOCATE} if parameters.fallocate == "keep" else set()
        return Needs(
            abilities=parameters.one.abilities | kept,
            largest_file_bytes=one_file(parameters.options),
        )

    def why_files(self, parameters: FioParameters) -> str | None:
        """Return the options that are about files."""
        about = sorted(OF_FILES & set(parameters.others))
        return f"'{', '.join(about)}' of fio is about files" if about else None

    def why_whole(self, parameters: FioParameters) -> str | None:
        """Return which of its options go by the clock, apart from the run time."""
        found = sorted(_BY_THE_CLOCK & set(parameters.others))
        return f"'{', '.join(found)}' of fio goes by the clock" if found else None

    def scaled(self, parameters: FioParameters, factor: float) -> scaling.Changes:
        return _fio_amounts.scaled(parameters.options, factor)

    def traits(self, parameters: FioParameters) -> Traits:
        """Return the traits, without the effects of options that fslab does not interpret."""
        every = parameters.fsync or parameters.fdatasync
        switches: dict[Switchable, dict[str, Scalar]] = {
            Switchable.DIRECT: {"direct": True},
            Switchable.SERIAL: {"numjobs": 1},
        }
        if parameters.overwrite is False:
            switches[Switchable.IN_PLACE] = {"overwrite": True}
        return Traits(
            reads=parameters.reads,
            writes=parameters.writes,
            direct=parameters.direct,
            request_bytes=tuple(parse_size(part) for part in parameters.bs.split(",")),
            parallel=parameters.numjobs,
            working_set_bytes=parameters.total_bytes,
            files=parameters.files,
            syncs_per_write=1 / every if every else None,
            switches=switches,
        )

    def notices(self, parameters: FioParameters) -> tuple[str, ...]:
        """Return the keys that fslab does not pass on to fio."""
        left_out = [key for key in parameters.model_extra or {} if key in LEFT_OUT]
        return (f"left out: {', '.join(left_out)}",) if left_out else ()

    def space_bytes(self, parameters: FioParameters) -> int:
        return parameters.total_bytes

    def memory_bytes(self, parameters: FioParameters) -> int:
        return parameters.one.memory_bytes

    def expected_s(self, parameters: FioParameters) -> float:
        """Return the duration of the layout, plus the run time or an estimate of it."""
        layout_s = parameters.total_bytes / _LAYOUT_BYTES_PER_S if parameters.laid_out else 0.0
        before_s = _STARTUP_S + layout_s + _fio_time.delay_s(parameters.others)
        rate = min(_GUESSED_BYTES_PER_S, _fio_time.block_bytes(parameters.options) * _GUESSED_IOPS)
        return before_s + parameters.one.work_s(rate)

    def waits(self, parameters: FioParameters) -> float:
        """Return the random requests that bypass the page cache or read, and the calls of fsync."""
        if parameters.runtime is not None:
            return 0.0
        options = parameters.options
        once = parameters.one.bytes // parameters.numjobs
        moved_bytes = parameters.numjobs * _fio_time.moved_bytes(options, once)
        requests = moved_bytes / _fio_time.block_bytes(options)
        seeks = parameters.rw.startswith("rand") and (parameters.direct or not parameters.writes)
        every = parameters.fsync or parameters.fdatasync
        return (requests if seeks else 0.0) + (requests / every if every and parameters.writes else 0.0)


def _reading(parameters: FioParameters, output: ToolOutput) -> Reading:
    job, one = job_of(output.files.get(REPORT, "")), parameters.one
    reached, _ = depth_bounds(job, parameters.iodepth)
    written = int(job["write"]["io_bytes"])
    once = parameters.writes and not (parameters.in_place or one.random)
    whole = not _fio_time.unreported(parameters.others)
    return Reading(
        metrics=figures(job, one) | {"achieved_depth": reached},
        latencies=latencies(job),
        read_bytes=int(job["read"]["io_bytes"]) if whole else None,
        written_bytes=written if whole else None,
        # With a final fsync. Rates are computed over it: that of the longer direction.
        measured_s=max(float(job[direction]["runtime"]) for direction in one.directions) / 1000,
        asked_s=one.runtime_s if one.timed and not one.ends_early else None,
        direct=parameters.direct,
        working_set_bytes=parameters.total_bytes,
        flushed=parameters.flushed if parameters.writes else None,
        passes=written / parameters.total_bytes if once and whole else None,
        zeros=one.zeros,
        repeats=parameters.writes and repeats_data(parameters.others),
        depth=None if PACED & parameters.others.keys() else depth(job, parameters.iodepth),
        # Buffered requests block in io_submit(2).
        queue_in_tool=not parameters.direct and parameters.iodepth > 1 and parameters.engine == "libaio",
        rates=_fio_rates.rates([one], output.files),
        counts=sync_count(job) if one.syncs else {},
    )


def _operations_log(job: Job) -> tuple[str, ...]:
    """Return options that log each operation's end, on the monotonic clock (1), and its duration."""
    prefix = (job.scratch / OPERATIONS).with_name(OPERATIONS.removesuffix("_lat.log"))
    clock = ("--log_alternate_epoch=1", "--log_alternate_epoch_clock_id=1")
    return (f"--write_lat_log={prefix}", "--per_job_logs=0", *clock)


def _values(parameters: FioParameters, job: Job) -> dict[str, str | int | None]:
    """Return the options of the job: the study's, and fslab's for those that it does not set. None: not given."""
    options: dict[str, str | int | None] = {
        "name": "fslab",
        **_place(parameters, job),
        "rw": parameters.rw,
        "bs": parameters.bs,
        "size": parameters.size,
        "ioengine": parameters.engine,
        "iodepth": parameters.iodepth,
        "numjobs": parameters.numjobs,
        "direct": int(parameters.direct),
        "rwmixread": parameters.rwmixread,
        "runtime": _runtime(parameters, job),
        "time_based": 1 if parameters.timed else None,
        "overwrite": 1 if parameters.in_place else None,
        "fallocate": parameters.fallocate,
        "fsync": parameters.fsync or None,
        "fdatasync": parameters.fdatasync or None,
        "end_fsync": 1 if parameters.final_fsync else None,
        "invalidate": None if job.cold else 0,
        **parameters.others,
    }
    options.setdefault("randrepeat", 0)
    # fio takes the seed modulo 2^32. It prints nothing at all if it cannot parse the seed.
    options.setdefault("randseed", job.seed % (1 << 32))
    return options


def _argv(values: Mapping[str, object]) -> tuple[str, ...]:
    return ("fio", *(f"--{name}={value}" for name, value in values.items() if value is not None))


def _place(parameters: FioParameters, job: Job) -> dict[str, str | int]:
    """Return where the job works: in its directory, or on its device, where each process has a region of its own."""
    # fio reads an unescaped colon as the separator between two directories or files.
    if job.device is None:
        return {"directory": str(job.directory).replace(":", "\\:")}
    place: dict[str, str | int] = {"filename": str(job.device).replace(":", "\\:")}
    return {**place, "offset_increment": parameters.size} if parameters.numjobs > 1 else place


def _layout(parameters: FioParameters, job: Job, values: Mapping[str, str | int | None]) -> tuple[str, ...]:
    """Return the command that writes the files before the run. It is the same for jobs that differ only in what they do
    with their files, so that these can share them (``fresh: block``).

    fio makes no files on a device: another job writes all of its regions once, with the same kind of content.
    """
    if job.device is None:
        # Options that fslab does not interpret may be those of an engine.
        left_out = _OF_THE_RUN if parameters.others else _OF_THE_RUN | {"ioengine"}
        kept = {key: value for key, value in values.items() if key not in left_out}
        return _argv({**kept, "rw": "read", "create_only": 1})
    size = parameters.total_bytes
    wanted: dict[str, object] = {
        "name": "layout", "filename": _place(parameters, job)["filename"], "rw": "write", "size": size,
        "bs": max(math.gcd(size, _LAYOUT_BYTES), SECTOR_BYTES), "end_fsync": 1,
        **{key: value for key, value in parameters.others.items() if key in CONTENT},
        "randrepeat": 0, "randseed": job.seed % (1 << 32),
    }  # fmt: skip
    return _argv(wanted)


def _runtime(parameters: FioParameters, job: Job) -> str | None:
    """Return the run time for fio's clock, which goes on while other tools have their turns."""
    run_s = parameters.one.runtime_s
    if job.turns == 1 or run_s is None:
        return parameters.runtime
    return f"{round(job.clock_s(run_s) * 1000)}ms"  # fio cuts fractions of a second
