"""fio with a job file: the results of each job of the file, and their total. Starts no process."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fslab.abilities import Ability, Needs
from fslab.errors import ToolOutputError
from fslab.record import Metric
from fslab.system.tools import Tool
from fslab.units import Direction, Unit
from fslab.workloads import Commands, Job, Reading, ToolOutput, Workload, _fio_time
from fslab.workloads._fio_file_parameters import FileJob, FioFileParameters
from fslab.workloads._fio_job import FIO, REPORT, direction_declared, latency
from fslab.workloads._fio_output import direction_metrics, jobs_of, latencies, sync_metrics
from fslab.workloads._fio_parameters import LARGEST_OF, largest_request
from fslab.workloads._traits import Traits

JOBS = "jobs.fio"
LAYOUT = "layout.fio"
_GUESSED_BYTES_PER_S = 200e6
_STARTUP_S = 0.5
_TOTALS = ("iops", "bandwidth")

Reports = Sequence[Mapping[str, Any]]


class FioFile(Workload[FioFileParameters]):
    """Runs the jobs as the file defines, in parallel or one after the other (``stonewall``), each as its own group."""

    name = "fio"
    summary = "fio with a job file"
    tools: ClassVar[tuple[Tool, ...]] = (FIO,)
    Parameters = FioFileParameters

    def metrics(self, parameters: FioFileParameters) -> tuple[Metric, ...]:
        """Return the metrics of each job, with its name as a prefix, and the totals if there are several jobs."""
        jobs = parameters.jobs
        found = [
            metric.model_copy(update={"name": _named(job, metric.name)})
            for job in jobs
            for metric in (*_declared(job), *_cpu())
        ]
        for direction in _directions(jobs) if len(jobs) > 1 else ():
            found.append(Metric(name=f"total_{direction}_iops", unit=Unit.IOPS))
            found.append(Metric(name=f"total_{direction}_bandwidth", unit=Unit.BYTES_PER_SECOND))
        first = self.headline(parameters)
        return tuple(sorted(found, key=lambda metric: metric.name not in first))

    def headline(self, parameters: FioFileParameters) -> tuple[str, ...]:
        """Return IOPS if all jobs are random, else bandwidth: of the only job, or of all jobs together."""
        jobs = parameters.jobs
        rate = "iops" if all(job.random for job in jobs) else "bandwidth"
        total = "total_" if len(jobs) > 1 else ""
        return tuple(f"{total}{direction}_{rate}" for direction in _directions(jobs))

    def commands(self, parameters: FioFileParameters, job: Job) -> Commands:
        """Return the commands: fio's own check of the file, the layout of files that are read, then the jobs."""
        report = ("--output-format=json", f"--output={job.scratch / REPORT}")
        file, layout = (str(job.scratch / name) for name in (JOBS, LAYOUT))
        return Commands(
            prepare=(("fio", "--parse-only", file), ("fio", layout)),
            run=("fio", *report, file),
            outputs=(REPORT,),
            inputs={JOBS: _text(parameters, job), LAYOUT: _text(parameters, job, "create_only=1")},
        )

    def read(self, parameters: FioFileParameters, output: ToolOutput) -> Reading:
        jobs, reports = parameters.jobs, jobs_of(output.files.get(REPORT, ""))
        if len(jobs) != len(reports):
            raise ToolOutputError(
                f"fio reports {len(reports)} jobs, but the job file has {len(jobs)}", where=REPORT
            )
        return _reading(jobs, reports)

    def needs(self, parameters: FioFileParameters) -> Needs:
        """Return the need for direct I/O in the directions in use."""
        used = {direction for job in parameters.jobs if job.direct for direction in job.directions}
        of = {"read": Ability.DIRECT_READS, "write": Ability.DIRECT_WRITES}
        return Needs(abilities=frozenset(of[direction] for direction in used))

    def traits(self, parameters: FioFileParameters) -> Traits:
        """Return the traits of all jobs together."""
        jobs = parameters.jobs
        return Traits(
            reads=any("read" in job.directions for job in jobs),
            writes=any("write" in job.directions for job in jobs),
            direct=all(job.direct for job in jobs),
            request_bytes=tuple(sorted({size for job in jobs for size in job.request_bytes})),
            parallel=sum(job.number("numjobs", 1) for job in jobs),
            working_set_bytes=sum(job.bytes for job in jobs),
            files=sum(job.number("nrfiles", 1) * job.number("numjobs", 1) for job in jobs),
        )

    def space_bytes(self, parameters: FioFileParameters) -> int:
        """Return the size of the files of all jobs. A file that several jobs share counts for each of them."""
        return sum(job.bytes for job in parameters.jobs)

    def memory_bytes(self, parameters: FioFileParameters) -> int:
        """Return the memory of all jobs. fio allocates that of later jobs while earlier ones run."""
        return sum(
            largest_request(job.options.get(key) for key in ("bs", *LARGEST_OF))
            * job.number("iodepth", 1)
            * job.number("numjobs", 1)
            for job in parameters.jobs
        )

    def expected_s(self, parameters: FioFileParameters) -> float:
        """Return the duration of the layout, plus that of the longest job of each phase."""
        jobs = parameters.jobs
        phases: dict[int, float] = {}
        for job in jobs:
            phases[job.phase] = max(phases.get(job.phase, 0.0), _work_s(job))
        layout_s = sum(job.bytes for job in jobs if "read" in job.directions) / _GUESSED_BYTES_PER_S
        return _STARTUP_S + layout_s + sum(phases.values())


def _work_s(job: FileJob) -> float:
    if job.runtime_s is not None and "time_based" in job.options:
        return job.runtime_s
    jobs = job.number("numjobs", 1)
    moving_s = jobs * _fio_time.moved_bytes(job.options, job.bytes // jobs) / _GUESSED_BYTES_PER_S
    work_s = max(moving_s, _fio_time.held_back_s(job.options, job.bytes // jobs))
    return work_s if job.runtime_s is None else min(work_s, job.runtime_s)


def _named(job: FileJob, name: str) -> str:
    return f"{job.label}_{name}" if job.label else name


def _declared(job: FileJob) -> list[Metric]:
    found = [metric for direction in job.directions for metric in direction_declared(direction)]
    return found + ([latency("fsync_mean"), latency("fsync_p99")] if job.syncs else [])


def _cpu() -> list[Metric]:
    return [
        Metric(name=f"cpu_{of}", unit=Unit.PERCENT, better=Direction.NEITHER) for of in ("user", "system")
    ]


def _directions(jobs: Sequence[FileJob]) -> tuple[str, ...]:
    used = {direction for job in jobs for direction in job.directions}
    return tuple(direction for direction in ("read", "write") if direction in used)


def _text(parameters: FioFileParameters, job: Job, *more: str) -> str:
    """Return the job file for fio: the directory and the seed, then each job with all options that apply to it."""
    directory = str(job.directory).replace(":", "\\:")
    lines = ["[global]", f"directory={directory}", "randrepeat=0", f"randseed={job.seed % (1 << 32)}"]
    lines += ["group_reporting=1", *(() if job.cold else ("invalidate=0",)), *more]
    for each in parameters.jobs:
        lines += [f"[{each.name}]", "new_group"]
        lines += [key if value is None else f"{key}={value}" for key, value in each.options.items()]
    return "\n".join(lines) + "\n"


def _reading(jobs: Sequence[FileJob], reports: Reports) -> Reading:
    metrics: dict[str, float | None] = {}
    percentiles: dict[str, Mapping[float, float]] = {}
    phases: dict[int, float] = {}
    for job, report in zip(jobs, reports, strict=True):
        own: dict[str, float | None] = {}
        for direction in job.directions:
            own |= direction_metrics(report, direction)
        own |= sync_metrics(report) if job.syncs else {}
        own |= {"cpu_user": float(report["usr_cpu"]), "cpu_system": float(report["sys_cpu"])}
        metrics |= {_named(job, name): value for name, value in own.items()}
        percentiles |= {_named(job, name): each for name, each in latencies(report).items()}
        seconds = max(float(report[direction]["runtime"]) for direction in job.directions) / 1000
        phases[job.phase] = max(phases.get(job.phase, 0.0), seconds)
    measured_s = sum(phases.values())
    for direction in _directions(jobs) if len(jobs) > 1 else ():
        counts = (sum(int(report[direction][key]) for report in reports) for key in ("total_ios", "io_bytes"))
        for name, count in zip(_TOTALS, counts, strict=True):
            metrics[f"total_{direction}_{name}"] = count / measured_s if measured_s else None
    whole = not any(
        "ramp_time" in job.options for job in jobs
    )  # fio does not report the bytes of the ramp time
    writing = [job for job in jobs if "write" in job.directions]
    return Reading(
        metrics=metrics,
        latencies=percentiles,
        read_bytes=sum(int(report["read"]["io_bytes"]) for report in reports) if whole else None,
        written_bytes=sum(int(report["write"]["io_bytes"]) for report in reports) if whole else None,
        measured_s=measured_s,
        direct=all(job.direct for job in jobs),
        working_set_bytes=sum(job.bytes for job in jobs),
        flushed=all(job.flushed for job in writing) if writing else None,
    )
