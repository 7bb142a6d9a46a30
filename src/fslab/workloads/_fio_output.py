"""Parses what fio writes (HOWTO, "JSON output", "Log File Formats"): its document, and its logs of bandwidth over time.

Latencies are in ns, bandwidth in B/s, run times in ms. A value that fio does not report is None. A failed job that fio
reports raises an error. fio takes one value per interval of a log, in a thread of its own: no request takes longer
because of it. Pure.
"""

import errno
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fslab import untrusted_text
from fslab.errors import FULL_DISK, SIZES_HINT, FslabError, NoSpaceError, ToolFailedError, ToolOutputError
from fslab.system.tool_messages import one_line
from fslab.trial_record import Metric
from fslab.units import Direction, Unit
from fslab.validity.facts import Depth, Rate
from fslab.workloads import is_known
from fslab.workloads._fio_one_job import OneJob

REPORT = "fio.json"
_ENDED = re.compile(r"^fio: pid=\d+, got signal=(\d+)", re.MULTILINE)  # reap_threads in backend.c
_NO_LATENCIES = frozenset(
    {"gtod_reduce", "disable_lat"}
)  # with a value of 0, too: rather no check than a false one
# Metric → where the report has it. fio measures the completion latency (clat) from submission, and the total latency
# (lat) from before submission. If a request already blocks in io_submit(2), as writes that extend a file do, only lat
# includes that time. The submission latency (slat, asynchronous engines only) shows it.
_LATENCIES = {
    "lat_mean": ("lat_ns", "mean"), "slat_mean": ("slat_ns", "mean"), "clat_mean": ("clat_ns", "mean"),
    "clat_p50": ("clat_ns", "50.000000"), "clat_p90": ("clat_ns", "90.000000"), "clat_p99": ("clat_ns", "99.000000"),
    "clat_p99_9": ("clat_ns", "99.900000"), "clat_max": ("clat_ns", "max"),
}  # fmt: skip
# fio 3.33 to 3.37 take 'atomic' and ignore it, and before them it is a flag of open(2) that no kernel knows
# (https://git.kernel.dk/?p=fio.git;a=commit;h=40f1fc11d4fc). Since 3.38 it is RWF_ATOMIC of pwritev2(2).
_IGNORES_ATOMIC = re.compile(r"fio-3\.(?:[0-2]?\d|3[0-7])(?!\d)")
_OF_SYNC = {"fsync_mean": ("lat_ns", "mean"), "fsync_p99": ("lat_ns", "99.000000")}
# Lower and upper bounds of the classes in which fio counts the queue depth at each submission (io_u_mark_depth).
_DEPTHS = {"1": (1, 1), "2": (2, 3), "4": (4, 7), "8": (8, 15), "16": (16, 31), "32": (32, 63)}
INTERVAL_MS = 200
_LONG_ENOUGH_S = 8.0  # shortest run with a useful rate over time
_LATE = 2.5  # intervals: maximum delay of fio; a longer gap means that nothing was transferred
_SUFFIX = "_bw.log"  # that fio adds if all processes of a job share a log


def jobs_of(text: str) -> list[Mapping[str, Any]]:
    """Return all jobs or groups of the document. Messages before and after the document are skipped.

    NoSpaceError, ToolFailedError: fio reports that a job failed. ToolOutputError: there is no such document, or fio is
    older than 3.0.
    """
    start = 0 if text.startswith("{") else text.find("\n{") + 1
    try:
        document = untrusted_text.first_json(text, start)
        jobs: list[Mapping[str, Any]] = list(document["jobs"])
        errors = [int(job["error"]) for job in jobs]
        _ = jobs[0]
        version = str(document.get("fio version", "this fio"))
    except (ValueError, LookupError, TypeError) as problem:
        raise ToolOutputError(
            f"fio wrote no JSON document with a job; it wrote: {one_line(text) or 'nothing'}",
            where=REPORT,
        ) from problem
    for error in filter(None, errors):
        raise _failure(error, text[:start].strip())
    if ended := _ENDED.search(text[:start]):
        # fio itself then exits with 0, and counts what the other processes did.
        raise ToolFailedError(f"a process of fio was ended by signal {ended[1]}: its figures are missing")
    if any("clat" in job.get(direction, {}) for job in jobs for direction in ("read", "write")):
        what = f"{version} reports latencies in µs; fslab needs fio 3.0 or newer"
        raise ToolOutputError(what, where=REPORT, hint="install a newer fio")
    if idle := [
        job for job in jobs if not any(job.get(name, {}).get("total_ios", 1) for name in ("read", "write"))
    ]:
        # With exitall, such a job ended, or did not start, because another one had ended.
        raise ToolFailedError(
            f"job '{idle[0].get('jobname')}' transferred nothing in the measured time",
            hint="give it more time or work; delete 'exitall' if it waits for another job",
        )
    common = document.get("global options", {})
    given = [{**common, **job.get("job options", {})} for job in jobs]
    if _IGNORES_ATOMIC.match(version) and any(options.get("atomic", "0") != "0" for options in given):
        raise ToolFailedError(
            f"{version} ignores 'atomic': no write was atomic",
            hint="install fio 3.38 or newer, or delete 'atomic'",
        )
    if early := [job for job, options in zip(jobs, given, strict=True) if _ended_in_ramp(job, options)]:
        raise ToolFailedError(
            f"job '{early[0].get('jobname')}' ended within its ramp time: nothing was measured after it",
            hint="with a limit of its rate, fio counts 'ramp_time' as part of 'runtime': make 'runtime' longer",
        )
    return jobs


def _ended_in_ramp(job: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Return whether fio measured no latency of a job with ramp time: it forgets those of the ramp when it ends, but
    reports the rates of a job that ends before (fio 3.33, with ``rate`` and ``runtime`` below ``ramp_time``)."""
    if "ramp_time" not in options or not _NO_LATENCIES.isdisjoint(options):
        return False
    counts = [job.get(name, {}).get("lat_ns", {}).get("N") for name in ("read", "write")]
    return None not in counts and not any(counts)


def declared(job: OneJob) -> list[Metric]:
    """Return the metrics of a job: ``figures``."""
    found = [
        metric
        for direction in job.directions
        for metric in (
            Metric(name=f"{direction}_iops", unit=Unit.IOPS),
            Metric(name=f"{direction}_bandwidth", unit=Unit.BYTES_PER_SECOND),
            *(_latency(f"{direction}_{name}") for name in _LATENCIES),
        )
    ]
    found += [_latency(name) for name in _OF_SYNC] if job.syncs else []
    # CPU shares refer to the job's run time: a job that does more work per second may use more CPU.
    shares = ("cpu_user", "cpu_system")
    return found + [Metric(name=name, unit=Unit.PERCENT, better=Direction.NEITHER) for name in shares]


def latencies_if_held_back(job: OneJob, direction: str) -> tuple[str, ...]:
    """Return the mean latencies of a job that its options make slower than the disk; empty for others, and if fio
    measures none."""
    if not job.held_back or not _NO_LATENCIES.isdisjoint(job.options):
        return ()
    return (f"{direction}_lat_mean", *(["fsync_mean"] if job.syncs and direction == "write" else []))


def _latency(name: str) -> Metric:
    return Metric(name=name, unit=Unit.NANOSECONDS, better=Direction.LOWER)


def figures(report: Mapping[str, Any], job: OneJob) -> dict[str, float | None]:
    """Return the figures of a job: rates and latencies of each direction, latency of fsync, and CPU shares."""
    found: dict[str, float | None] = {}
    for direction in job.directions:
        part = report[direction]
        used = bool(part["total_ios"])
        found[f"{direction}_iops"] = float(part["iops"]) if used else None
        # fio 3.1 and older report only KiB/s.
        bytes_per_s = float(part["bw_bytes"] if "bw_bytes" in part else part["bw"] * 1024)
        found[f"{direction}_bandwidth"] = bytes_per_s if used else None
        found |= {f"{direction}_{name}": _latency_ns(part, *at) for name, at in _LATENCIES.items()}
    if job.syncs:  # fio reports fsync and fdatasync separately from the writes
        found |= {name: _latency_ns(report.get("sync", {}), *at) for name, at in _OF_SYNC.items()}
    return found | {"cpu_user": float(report["usr_cpu"]), "cpu_system": float(report["sys_cpu"])}


def _latency_ns(part: Mapping[str, Any], kind: str, key: str) -> float | None:
    """Return a latency of one kind: ``mean``, ``max``, or a percentile, if a request was above it."""
    found = _measured(part, kind)
    value = found.get(key)
    if key in found.get("percentile", {}) and is_known(float(key), int(found.get("N", part["total_ios"]))):
        value = found["percentile"][key]
    return float(value) if isinstance(value, int | float) else None


def _measured(part: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the latencies of one kind; empty if none was measured.

    fio writes zeros if none was measured. fio 3.19 reports the number of samples (N), 3.16 does not. Without N, there
    were samples if there was any I/O and the maximum is above 0 (with synchronous engines, the submission latency is
    0).
    """
    found: Mapping[str, Any] = part.get(name, {})
    count = found.get("N", part.get("total_ios", 0) if found.get("max") else 0)
    return found if count else {}


def sync_count(job: Mapping[str, Any]) -> dict[str, int]:
    """Return how many calls of fsync and fdatasync there were, as ``Reading.counts``; fio 3.16 does not report it."""
    count = _measured(job.get("sync", {}), "lat_ns").get("N")
    return {"fsync": int(count)} if count else {}


def latencies(job: Mapping[str, Any]) -> dict[str, dict[float, float]]:
    """Return all percentiles that fio reports, by operation. fsync and fdatasync are separate from the writes."""
    parts = {
        "read": _measured(job["read"], "clat_ns"),
        "write": _measured(job["write"], "clat_ns"),
        "fsync": _measured(job.get("sync", {}), "lat_ns"),
    }
    # Old versions of fio pad the list of percentiles with zeros.
    return {
        name: {float(percent): float(ns) for percent, ns in part["percentile"].items() if float(percent) > 0}
        for name, part in parts.items()
        if part.get("percentile")
    }


def depth_bounds(job: Mapping[str, Any], iodepth: int) -> tuple[float, float] | tuple[None, None]:
    """Return the lower and the upper bound of the mean number of requests in flight at submission.

    fio counts submissions in classes of this number, and reports no mean. None: fio counted nothing.
    """
    shares = {_DEPTHS.get(key, (64, iodepth)): float(share) for key, share in job["iodepth_level"].items()}
    whole = sum(shares.values())
    if not whole:
        return None, None
    return (
        sum(min(low, iodepth) * share for (low, _), share in shares.items()) / whole,
        sum(min(high, iodepth) * share for (_, high), share in shares.items()) / whole,
    )


def depth(job: Mapping[str, Any], iodepth: int) -> Depth | None:
    """Return the requested and the reached queue depth; None if fio counted nothing."""
    low, high = depth_bounds(job, iodepth)
    if low is None or high is None:
        return None
    return Depth(asked=iodepth, at_least=low, at_most=high)


def _failure(error: int, said: str) -> FslabError:
    what = f"fio failed with {errno.errorcode.get(error, error)}" + (f": {said}" if said else "")
    if error in FULL_DISK:
        return NoSpaceError(what, hint=SIZES_HINT)
    return ToolFailedError(what)


def log_of(job: OneJob) -> str | None:
    """Return the name of the log of all processes of a job; None if its run is known to be too short for one."""
    if job.timed and (job.runtime_s or 0) < _LONG_ENOUGH_S:
        return None
    return f"{job.label or 'fio'}{_SUFFIX}"


def logs_of(jobs: Iterable[OneJob]) -> tuple[str, ...]:
    """Return the names of all logs of these jobs."""
    return tuple(name for job in jobs if (name := log_of(job)))


def log_options(job: OneJob, scratch: Path) -> dict[str, str | int]:
    """Return the options with which fio writes the log of a job to ``scratch``; none for a job without one."""
    if (name := log_of(job)) is None:
        return {}
    prefix = str(scratch / name).removesuffix(_SUFFIX)
    return {"write_bw_log": prefix, "log_avg_msec": INTERVAL_MS, "per_job_logs": 0}


def rates(jobs: Iterable[OneJob], files: Mapping[str, str]) -> tuple[Rate, ...]:
    """Return the bandwidth over time of each job that has a log with a line. ``files``: name of a log → its text."""
    found = []
    for job in jobs:
        if (name := log_of(job)) and (values := rate_over_time(files.get(name, ""))):
            what = f"{job.label} bandwidth".lstrip()
            found.append(Rate(what=what, interval_s=INTERVAL_MS / 1000, values=values))
    return tuple(found)


def rate_over_time(text: str) -> tuple[float, ...]:
    """Return the bandwidth of all processes and directions together, in B/s for each interval, from the text of a log.

    A line of the log has the end of an interval in ms, and the mean over the interval in KiB/s. fio appends one process
    after the other. It leaves out intervals without transfers, and the last interval of each process unless it is
    complete.
    """
    processes: list[dict[int, dict[str, float]]] = []
    last_ms = 0
    for fields in (line.split(", ") for line in text.splitlines()):
        if len(fields) < 3 or not (fields[0].isdigit() and fields[1].isdigit()):
            continue
        if not processes or int(fields[0]) < last_ms:
            processes.append({})
        last_ms = int(fields[0])
        processes[-1].setdefault(last_ms, {})[fields[2]] = int(fields[1]) * 1024.0
    each = [_by_interval({end_ms: sum(parts.values()) for end_ms, parts in one.items()}) for one in processes]
    return tuple(map(sum, zip(*each, strict=False)))  # up to the end of the shortest process


def _by_interval(process: Mapping[int, float]) -> list[float]:
    """Return one rate per interval of a process, from rates by the time at which fio took them.

    On a busy machine fio takes a rate late. The rate then covers the time since the previous one. After a gap of more
    than ``_LATE`` intervals, the missing intervals had no transfers.
    """
    values: list[float] = []
    taken_ms = 0
    for end_ms, rate in process.items():
        missing = round(end_ms / INTERVAL_MS) - len(values)
        stood_still = end_ms - taken_ms > _LATE * INTERVAL_MS
        values += [0.0 if stood_still else rate] * (missing - 1)
        values += [rate] * (missing > 0)
        taken_ms = end_ms
    return values
