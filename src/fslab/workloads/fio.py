"""fio, the flexible I/O tester: one job by fio's own option names, or the jobs of a job file (``_fio_file``).

Builds the fio commands and parses their JSON; starts no process. All options of a single job are on the command line,
so that users can copy and run it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fslab import scaling
from fslab.cell import Scalar
from fslab.filesystem_abilities import Ability, Needs
from fslab.trial_record import Metric
from fslab.units import Direction, Unit
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
    long_options,
)
from fslab.workloads._fio_amounts import one_file
from fslab.workloads._fio_file import CHECK, FioFile, FioJobs, reading_of
from fslab.workloads._fio_file_reading import with_includes
from fslab.workloads._fio_options import CONTENT, LEFT_OUT, OF_FILES, PACED
from fslab.workloads._fio_output import (
    REPORT,
    depth_bounds,
    jobs_of,
    log_options,
    logs_of,
    rates,
    sync_count,
)
from fslab.workloads._fio_parameters import FioParameters

_FILE = FioFile()
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
# Options that delay or limit requests by the clock: also "Time related parameters".
_BY_THE_CLOCK = PACED | {
    "ramp_time", "startdelay", "thinktime_iotime", "rate_min", "rate_iops_min", "max_latency", "unlink_each_loop",
}  # fmt: skip


class Fio(FioJobs[FioParameters]):
    """One fio job over its own files.

    Files that are read or written in place are laid out, fully written, before the measured run. Sequential writes make
    new files (``fallocate=none``: writing allocates, and there are no unwritten extents that the run would convert).
    Buffered writes end with an fsync that fio includes in the run time. ``randseed`` requires ``randrepeat=0``: fio
    3.33 ignores the seed otherwise. fio drops its files from the page cache first (``invalidate``), unless the study
    requires a warm cache.
    """

    summary = "fio, the flexible I/O tester: sequential, random and mixed I/O at any queue depth"
    Parameters = FioParameters

    def of(self, raw: Mapping[str, Any]) -> Workload[Any]:
        """Return the workload of a job file, if there is one."""
        return _FILE if "file" in raw else self

    def with_includes(self, name: str, text: str, read: Callable[[str], str]) -> str:
        return with_includes(name, text, read)

    def metrics(self, parameters: FioParameters) -> tuple[Metric, ...]:
        reached = Metric(name="achieved_depth", unit=Unit.COUNT, better=Direction.NEITHER)
        return (*super().metrics(parameters), reached)

    def commands(self, parameters: FioParameters, job: Job) -> Commands:
        """Return the job, and before it ``fio --create_only=1`` if files must exist."""
        values = _values(parameters, job)
        options = ("fio", *long_options(values))
        report = ("--group_reporting=1", "--output-format=json", f"--output={job.scratch / REPORT}")
        layout = (_layout(parameters, job, values),) if parameters.laid_out else ()
        made = Commands(prepare=layout, run=(*options, *report), outputs=(REPORT,), prepared=())
        if job.each_operation:
            log = (*_operations_log(job), *report)
            return replace(made, run=(*options, *log), operations=OPERATIONS)
        logged = long_options(log_options(parameters.one, job.scratch))
        return replace(made, run=(*options, *logged, *report), outputs=(REPORT, *logs_of([parameters.one])))

    def checks(self, parameters: FioParameters, job: Job) -> tuple[Check, ...]:
        return (Check(argv=CHECK, own=tuple(long_options(_values(parameters, job)))),)

    def read(self, parameters: FioParameters, output: ToolOutput) -> Reading:
        """Parse the figures of the job. NoSpaceError or ToolFailedError if fio reports that it failed."""
        job, one = jobs_of(output.files.get(REPORT, ""))[0], parameters.one
        reached, _ = depth_bounds(job, parameters.iodepth)
        found = reading_of([one], [job])
        once = (
            parameters.writes and not (parameters.in_place or one.random) and found.written_bytes is not None
        )
        return replace(
            found,
            metrics={**found.metrics, "achieved_depth": reached},
            # With a final fsync. Rates are computed over it: that of the longer direction.
            measured_s=max(float(job[direction]["runtime"]) for direction in one.directions) / 1000,
            asked_s=one.runtime_s if one.timed and not one.ends_early else None,
            passes=(found.written_bytes or 0) / parameters.total_bytes if once else None,
            rates=rates([one], output.files),
            counts=sync_count(job) if one.syncs else {},
        )

    def needs(self, parameters: FioParameters) -> Needs:
        """Return the need for direct I/O in use, for fallocate if fio has no fallback, and for its largest file."""
        # native falls back to no preallocation, and posix to writing: fio(1), "fallocate".
        kept = {Ability.FALLOCATE} if parameters.fallocate == "keep" else set()
        return Needs(
            abilities=super().needs(parameters).abilities | kept,
            largest_file_bytes=one_file(parameters.options),
        )

    def why_files(self, parameters: FioParameters) -> str | None:
        about = sorted(OF_FILES & set(parameters.others))
        return f"'{', '.join(about)}' of fio is about files" if about else None

    def why_whole(self, parameters: FioParameters) -> str | None:
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
        found = super().traits(parameters)
        return replace(found, syncs_per_write=1 / every if every else None, switches=switches)

    def notices(self, parameters: FioParameters) -> tuple[str, ...]:
        """Return the keys that fslab does not pass on to fio."""
        left_out = [key for key in parameters.model_extra or {} if key in LEFT_OUT]
        return (f"left out: {', '.join(left_out)}",) if left_out else ()

    def expected_s(self, parameters: FioParameters) -> float:
        """Return the duration of the layout, plus the run time or an estimate of it."""
        layout_s = parameters.total_bytes / _LAYOUT_BYTES_PER_S if parameters.laid_out else 0.0
        before_s = _STARTUP_S + layout_s + parameters.one.delay_s
        rate = min(_GUESSED_BYTES_PER_S, parameters.one.block_bytes * _GUESSED_IOPS)
        return before_s + parameters.one.work_s(rate)

    def waits(self, parameters: FioParameters) -> float:
        """Return the random requests that bypass the page cache or read, and the calls of fsync."""
        if parameters.runtime is not None:
            return 0.0
        requests = parameters.numjobs * parameters.one.moved_bytes / parameters.one.block_bytes
        seeks = parameters.rw.startswith("rand") and (parameters.direct or not parameters.writes)
        every = parameters.fsync or parameters.fdatasync
        return (requests if seeks else 0.0) + (requests / every if every and parameters.writes else 0.0)


def _operations_log(job: Job) -> tuple[str, ...]:
    """Return options that log each operation's end, on the monotonic clock (1), and its duration."""
    prefix = (job.scratch / OPERATIONS).with_name(OPERATIONS.removesuffix("_lat.log"))
    clock = ("--log_alternate_epoch=1", "--log_alternate_epoch_clock_id=1")
    return (f"--write_lat_log={prefix}", "--per_job_logs=0", *clock)


def _values(parameters: FioParameters, job: Job) -> dict[str, object]:
    """Return the options of the job: the study's, and fslab's for those that it does not set."""
    options: dict[str, object] = {"name": "fslab", **_place(parameters, job), **parameters.options}
    run_s = parameters.one.runtime_s
    if job.turns > 1 and run_s is not None:
        # fio's clock goes on while other tools have their turns; it cuts fractions of a second.
        options["runtime"] = f"{round(job.clock_s(run_s) * 1000)}ms"
    if not job.cold:
        options.setdefault("invalidate", 0)
    options.setdefault("randrepeat", 0)
    # fio takes the seed modulo 2^32. It prints nothing at all if it cannot parse the seed.
    options.setdefault("randseed", job.seed % (1 << 32))
    return options


def _place(parameters: FioParameters, job: Job) -> dict[str, str | int]:
    """Return where the job works: in its directory, or on its device, where each process has a region of its own."""
    # fio reads an unescaped colon as the separator between two directories or files.
    if job.device is None:
        return {"directory": str(job.directory).replace(":", "\\:")}
    place: dict[str, str | int] = {"filename": str(job.device).replace(":", "\\:")}
    return {**place, "offset_increment": parameters.size} if parameters.numjobs > 1 else place


def _layout(parameters: FioParameters, job: Job, values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the command that writes the files before the run. It is the same for jobs that differ only in what they do
    with their files, so that these can share them (``fresh: block``).

    fio makes no files on a device: another job writes all of its regions once, with the same kind of content.
    """
    if job.device is None:
        # Options that fslab does not interpret may be those of an engine.
        left_out = _OF_THE_RUN if parameters.others else _OF_THE_RUN | {"ioengine"}
        kept = {key: value for key, value in values.items() if key not in left_out}
        return ("fio", *long_options({**kept, "rw": "read", "create_only": 1}))
    size = parameters.total_bytes
    wanted: dict[str, object] = {
        "name": "layout", "filename": _place(parameters, job)["filename"], "rw": "write", "size": size,
        "bs": max(math.gcd(size, _LAYOUT_BYTES), SECTOR_BYTES), "end_fsync": 1,
        **{key: value for key, value in parameters.others.items() if key in CONTENT},
        "randrepeat": 0, "randseed": job.seed % (1 << 32),
    }  # fmt: skip
    return ("fio", *long_options(wanted))
