"""fio with a job file: the results of each job of the file, and their total. Starts no process."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from fslab import scaling
from fslab.errors import ToolOutputError
from fslab.filesystem_abilities import Needs
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Unit
from fslab.validity.facts import Depth
from fslab.workloads import Check, Commands, Job, Reading, ToolOutput, Traits, Workload, _fio_amounts
from fslab.workloads._fio_file_parameters import FioFileParameters
from fslab.workloads._fio_one_job import (
    JobParameters,
    OneJob,
    all_files,
    covered_s,
    phases,
    reported_spans,
    spans,
    together_s,
)
from fslab.workloads._fio_options import PACED, SYNC_ENGINES, repeats_data
from fslab.workloads._fio_output import (
    REPORT,
    declared,
    depth,
    figures,
    jobs_of,
    latencies,
    latencies_if_held_back,
    log_options,
    logs_of,
    rates,
)

# Where it finds a file fio-dump-status, it writes figures so far, as if they were its report (fio, helper_thread.c).
FIO = Tool(program="fio", package="fio", own_temporary=True)
# fio (since 3.8) then reads its jobs, sets them up, and ends before it touches a file ("don't start any I/O").
# With --parse-only it would end before it compares options with each other and looks for the I/O engine.
CHECK = ("fio", "--merge-blktrace-only")

JOBS = "jobs.fio"
LAYOUT = "layout.fio"
_GUESSED_BYTES_PER_S = 200e6
_STARTUP_S = 0.5

Reports = Sequence[Mapping[str, Any]]
J = TypeVar("J", bound=JobParameters)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobsTogether:
    """Jobs that run together in one direction, by their places in the file. ``label``: prefix of their sum."""

    label: str
    direction: str
    places: tuple[int, ...]


class FioJobs(Workload[J]):
    """What a single job and the jobs of a file have in common."""

    tools: ClassVar[tuple[Tool, ...]] = (FIO,)

    def metrics(self, parameters: J) -> tuple[Metric, ...]:
        """Return the metrics of each job, with its name as a prefix, and the sums of jobs that run together."""
        jobs = parameters.jobs
        found = [
            metric.model_copy(update={"name": _named(job, metric.name)})
            for job in jobs
            for metric in declared(job)
        ]
        for group in _sums(jobs):
            found.append(Metric(name=f"{group.label}_{group.direction}_iops", unit=Unit.IOPS))
            found.append(
                Metric(name=f"{group.label}_{group.direction}_bandwidth", unit=Unit.BYTES_PER_SECOND)
            )
        return self.headline_first(parameters, found)

    def headline(self, parameters: J) -> tuple[str, ...]:
        """Return IOPS of random jobs, bandwidth of others: the sum of like jobs that run together, else each job's own.

        In a sum of unlike ones, a job of large requests hides one that syncs small ones. Before it, the mean latencies
        of a job that is held back: its rate is what its options ask for.
        """
        jobs, sums = parameters.jobs, _sums(parameters.jobs)
        names = []
        for index, job in enumerate(jobs):
            for direction in job.directions:
                names += [_named(job, name) for name in latencies_if_held_back(job, direction)]
                group = next((g for g in sums if g.direction == direction and index in g.places), None)
                kinds = {jobs[at].kind for at in group.places} if group else set()
                name = f"{direction}_{'iops' if job.random else 'bandwidth'}"
                names.append(f"{group.label}_{name}" if group and len(kinds) == 1 else _named(job, name))
        return tuple(dict.fromkeys(names))

    def needs(self, parameters: J) -> Needs:
        return Needs(abilities=frozenset(each for job in parameters.jobs for each in job.abilities))

    def traits(self, parameters: J) -> Traits:
        jobs = parameters.jobs
        return Traits(
            reads=any("read" in job.directions for job in jobs),
            writes=any("write" in job.directions for job in jobs),
            direct=all(job.direct for job in jobs),
            request_bytes=tuple(sorted({size for job in jobs for size in job.request_bytes})),
            parallel=_parallel(jobs),
            working_set_bytes=all_files(jobs).bytes,
            files=all_files(jobs).count,
            held_back=any(job.held_back for job in jobs),
            set_time=any(job.timed for job in jobs),
        )

    def space_bytes(self, parameters: J) -> int:
        """Return the size of the files of all jobs. A file that several jobs share counts once."""
        return all_files(parameters.jobs).bytes

    def memory_bytes(self, parameters: J) -> int:
        """Return the memory of all jobs. fio allocates that of later jobs while earlier ones run."""
        return sum(job.memory_bytes for job in parameters.jobs)


class FioFile(FioJobs[FioFileParameters]):
    """Runs the jobs in the order that the file defines, each as its own group of fio."""

    name = "fio"
    summary = "fio with a job file"
    Parameters = FioFileParameters

    def commands(self, parameters: FioFileParameters, job: Job) -> Commands:
        report = ("--output-format=json", f"--output={job.scratch / REPORT}")
        return Commands(
            prepare=(("fio", str(job.scratch / LAYOUT)),),
            run=("fio", *report, str(job.scratch / JOBS)),
            outputs=(REPORT, *logs_of(parameters.jobs)),
            inputs={
                JOBS: _text(parameters, job, logs=job.scratch),
                LAYOUT: _text(parameters, job, "create_only=1"),
            },
        )

    def checks(self, parameters: FioFileParameters, job: Job) -> tuple[Check, ...]:
        """Return the check of the job file. fio forgets each job that it only checks, and would not find the one that
        another waits for: these names are checked before (``_fio_refused_options``)."""
        text = re.sub(r"(?m)^wait_for=.*\n", "", _text(parameters, job))
        return (Check(argv=(*CHECK, JOBS), file=JOBS, text=text),)

    def place_of(self, parameters: FioFileParameters, told: str) -> str | None:
        return parameters.read.place_of(told)

    def read(self, parameters: FioFileParameters, output: ToolOutput) -> Reading:
        jobs, reports = parameters.jobs, jobs_of(output.files.get(REPORT, ""))
        if len(jobs) != len(reports):
            raise ToolOutputError(
                f"fio reports {len(reports)} jobs, but the job file has {len(jobs)}", where=REPORT
            )
        return replace(reading_of(jobs, reports), rates=rates(jobs, output.files))

    def why_whole(self, parameters: FioFileParameters) -> str:  # noqa: ARG002
        return "when jobs of a job file start is up to fio's clock"

    def notices(self, parameters: FioFileParameters) -> tuple[str, ...]:
        """Return what of the file fslab does not pass on to fio, and what fio ignores."""
        found = parameters.read
        parts = [f"left out: {', '.join(found.left_out)}"] if found.left_out else []
        parts += [f"{size} is {value} bytes to fio" for size, value in found.sizes.items()]
        parts += [
            f"{name} is the file {used} on the file system under test"
            for name, used in found.replaced.items()
        ]
        parts += [
            f"iodepth has no effect in '{job.name}' with {job.engine}"
            for job in parameters.jobs
            if job.iodepth > 1 and job.engine in SYNC_ENGINES
        ]
        return (f"{parameters.file}: {'; '.join(parts)}",) if parts else ()

    def scaled(self, parameters: FioFileParameters, factor: float) -> scaling.Changes:
        """Scale the sizes and times of the file by its ``scale``, and those that are given beside it."""
        given = parameters.given
        amounts = _fio_amounts.scaled({**parameters.jobs[0].options, **given}, factor)
        found = {key: change for key, change in amounts.items() if key in given}
        return {"scale": scaling.number(parameters.scale, factor), **found}

    def expected_s(self, parameters: FioFileParameters) -> float:
        """Return the duration of the layout, plus the time until the last job has ended."""
        jobs = parameters.jobs
        read = [job for job in jobs if "read" in job.directions]
        durations_s = [job.work_s(_GUESSED_BYTES_PER_S) - job.ramp_s for job in jobs]
        last_s = max(end for _, end in spans(jobs, durations_s))
        return _STARTUP_S + all_files(read).bytes / _GUESSED_BYTES_PER_S + last_s


def _named(job: OneJob, name: str) -> str:
    return f"{job.label}_{name}" if job.label else name


def _sums(jobs: Sequence[OneJob]) -> list[JobsTogether]:
    """Return the groups of two or more jobs that run together in one direction, in the order of their phases."""
    numbers = phases(jobs)
    found = []
    for direction in ("read", "write"):
        of = {place: numbers[place] for place, job in enumerate(jobs) if direction in job.directions}
        for phase in dict.fromkeys(of.values()):
            places = tuple(place for place, each in of.items() if each == phase)
            label = "total" if len(places) == len(of) else f"phase_{phase}"
            found.append(JobsTogether(label=label, direction=direction, places=places))
    return [group for group in found if len(group.places) > 1]


def _parallel(jobs: Sequence[OneJob]) -> int:
    """Return the largest number of processes between two barriers (``stonewall``)."""
    found = [0]
    for job in jobs:
        if job.walled:
            found.append(0)
        found[-1] += job.number("numjobs", 1)
    return max(found)


def _text(parameters: FioFileParameters, job: Job, *more: str, logs: Path | None = None) -> str:
    """Return the job file for fio: the directory and the seed, then each job with all options that apply to it.
    ``logs``: where fio logs the bandwidth of each job."""
    # The working directory, not its name: that can have characters that end a line or begin a comment, then options.
    lines = ["[global]", "directory=.", "randrepeat=0", f"randseed={job.seed % (1 << 32)}"]
    lines += ["group_reporting=1", *(() if job.cold else ("invalidate=0",)), *more]
    for each in parameters.jobs:
        log = log_options(each, logs) if logs else {}
        lines += [*each.lines, *(f"{name}={value}" for name, value in log.items())]
    return "\n".join(lines) + "\n"


def reading_of(jobs: Sequence[OneJob], reports: Reports) -> Reading:
    """Return what fio reports of its jobs, together and each with its name."""
    metrics: dict[str, float | None] = {}
    percentiles: dict[str, Mapping[float, float]] = {}
    for job, report in zip(jobs, reports, strict=True):
        metrics |= {_named(job, name): value for name, value in figures(report, job).items()}
        percentiles |= {_named(job, name): each for name, each in latencies(report).items()}
    for group in _sums(jobs):
        metrics |= _sum(group, jobs, reports)
    measured = reported_spans(jobs, reports, ("read", "write"))
    limits_s = [job.runtime_s for job in jobs if job.timed and job.runtime_s and not job.ends_early]
    asked = spans(jobs, limits_s) if len(limits_s) == len(jobs) else None
    whole = not any(job.unreported for job in jobs)
    writing = [
        (job, int(report["write"]["total_ios"]))
        for job, report in zip(jobs, reports, strict=True)
        if "write" in job.directions
    ]
    return Reading(
        metrics=metrics,
        latencies=percentiles,
        read_bytes=sum(int(report["read"]["io_bytes"]) for report in reports) if whole else None,
        written_bytes=sum(int(report["write"]["io_bytes"]) for report in reports) if whole else None,
        measured_s=covered_s(measured),
        asked_s=covered_s(asked) if asked else None,
        parts_s={
            job.label: end - begin for job, (begin, end) in zip(jobs, measured, strict=True) if job.label
        },
        direct=all(job.direct for job in jobs),
        working_set_bytes=all_files(jobs).bytes,
        flushed=all(job.flushed(writes) for job, writes in writing) if writing else None,
        zeros=any(job.zeros for job in jobs),
        repeats=any(repeats_data(job.options) for job, _ in writing),
        passes=_passes(jobs, reports) if whole else None,
        depth=_depth(jobs, reports),
        # Buffered requests block in io_submit(2).
        queue_in_tool=any(job.engine == "libaio" and job.iodepth > 1 and not job.direct for job in jobs),
    )


def _passes(jobs: Sequence[OneJob], reports: Reports) -> float | None:
    """Return how often the sequential job that wrote its new files most often went over them; None without such jobs.
    Files that a job reads, or overwrites, exist before the run."""
    existing = frozenset[str]().union(*(job.file_names for job in jobs if "read" in job.directions))
    return max(
        (
            int(report["write"]["io_bytes"]) / job.bytes
            for job, report in zip(jobs, reports, strict=True)
            if job.mode == "write" and not job.number("overwrite", 0) and existing.isdisjoint(job.file_names)
        ),
        default=None,
    )


def _depth(jobs: Sequence[OneJob], reports: Reports) -> Depth | None:
    """Return the depth of the job that is furthest from what its file asks of an asynchronous engine."""
    found = [
        depth(report, job.iodepth)
        for job, report in zip(jobs, reports, strict=True)
        if job.iodepth > 1 and job.engine not in SYNC_ENGINES and PACED.isdisjoint(job.options)
    ]
    return min(filter(None, found), key=lambda each: each.at_most / each.asked, default=None)


def _sum(group: JobsTogether, jobs: Sequence[OneJob], reports: Reports) -> dict[str, float | None]:
    """Return what the jobs transferred, by the time from the first start to the last end in this direction."""
    measured = reported_spans(jobs, reports, (group.direction,))
    seconds = together_s([measured[place] for place in group.places])
    found = {}
    for name, key in (("iops", "total_ios"), ("bandwidth", "io_bytes")):
        count = sum(int(reports[place][group.direction][key]) for place in group.places)
        found[f"{group.label}_{group.direction}_{name}"] = count / seconds if seconds else None
    return found
