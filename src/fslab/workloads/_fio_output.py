"""Read fio's JSON document (HOWTO, "JSON output"): latencies in ns, bandwidth in B/s, run times in ms.

Pure functions. What fio does not say is None; what it says about jobs that failed is raised.
"""

import errno
from collections.abc import Mapping
from typing import Any

from fslab import texts
from fslab.errors import FslabError, NoSpaceError, ToolFailedError, ToolOutputError
from fslab.validity.facts import Depth, Rate
from fslab.workloads._fio_parameters import FioParameters

RATE_MS = 200
_LATE = 2.5  # intervals: what fio is late by at most
PERCENTILES = {
    "p50": "50.000000",
    "p90": "90.000000",
    "p99": "99.000000",
    "p99_9": "99.900000",
}
# Lower and upper ends of the classes that fio sorts the depth at each submission into (io_u_mark_depth).
_DEPTHS = {"1": (1, 1), "2": (2, 3), "4": (4, 7), "8": (8, 15), "16": (16, 31), "32": (32, 63)}


def job_of(text: str) -> Mapping[str, Any]:
    """The one job (or group of alike jobs) of the document; raises as ``jobs_of``."""
    return jobs_of(text)[0]


def jobs_of(text: str) -> list[Mapping[str, Any]]:
    """All jobs or groups of the document; messages before and after it are skipped.

    NoSpaceError, ToolFailedError: fio says that a job failed; ToolOutputError: no such document.
    """
    start = 0 if text.startswith("{") else text.find("\n{") + 1
    try:
        document = texts.first_json(text, start)
        jobs: list[Mapping[str, Any]] = list(document["jobs"])
        errors = [int(job["error"]) for job in jobs]
        _ = jobs[0]
    except (ValueError, LookupError, TypeError) as problem:
        raise ToolOutputError(
            f"fio wrote no JSON document with a job; it wrote: {text.strip()[-200:] or 'nothing'}",
            where="fio.json",
        ) from problem
    for error in filter(None, errors):
        raise _failure(error, text[:start].strip())
    if any("clat" in job.get(direction, {}) for job in jobs for direction in ("read", "write")):
        what = (
            f"{document.get('fio version', 'this fio')} reports latencies in µs; fslab needs fio 3.0 or newer"
        )
        raise ToolOutputError(what, where="fio.json", hint="install a newer fio")
    return jobs


def direction_metrics(job: Mapping[str, Any], direction: str) -> dict[str, float | None]:
    """IOPS, bandwidth, completion latency of one direction, ``read`` or ``write``, and its whole latency.

    fio counts from submission to completion (clat) and from before submission (lat). Where a request
    already blocks in io_submit(2), as writes that extend a file do, only the latter holds the time it took,
    and the time of submission (slat, of asynchronous engines only) shows it.
    """
    part = job[direction]
    whole, submission = _measured(part, "lat_ns"), _measured(part, "slat_ns")
    latency = _measured(part, "clat_ns")
    percentiles = latency.get("percentile", {})
    return {
        f"{direction}_iops": float(part["iops"]) if part["total_ios"] else None,
        f"{direction}_bandwidth": _bytes_per_s(part) if part["total_ios"] else None,
        f"{direction}_lat_mean": _number(whole.get("mean")),
        f"{direction}_slat_mean": _number(submission.get("mean")),
        f"{direction}_clat_mean": _number(latency.get("mean")),
        **{f"{direction}_clat_{name}": _number(percentiles.get(key)) for name, key in PERCENTILES.items()},
        f"{direction}_clat_max": _number(latency.get("max")),
    }


def _measured(part: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Latencies of one kind; empty where none was measured.

    fio writes zeros then. 3.19 tells the number of samples (N), 3.16 does not: there were some if there was any
    I/O and the longest took more than nothing (of synchronous engines the submission does not).
    """
    found: Mapping[str, Any] = part.get(name, {})
    count = found.get("N", part.get("total_ios", 0) if found.get("max") else 0)
    return found if count else {}


def _bytes_per_s(part: Mapping[str, Any]) -> float:
    """fio 3.1 and older tell KiB/s alone."""
    return float(part["bw_bytes"]) if "bw_bytes" in part else float(part["bw"]) * 1024


def sync_metrics(job: Mapping[str, Any]) -> dict[str, float | None]:
    """Latency of fsync and fdatasync, which fio keeps apart from that of the writes."""
    latency = _measured(job.get("sync", {}), "lat_ns")
    return {
        "fsync_mean": _number(latency.get("mean")),
        "fsync_p99": _number(latency.get("percentile", {}).get(PERCENTILES["p99"])),
    }


def latencies(job: Mapping[str, Any]) -> dict[str, dict[float, float]]:
    """All percentiles that fio tells, by operation; those of fsync and fdatasync stand apart from the writes'."""
    parts = {
        "read": _measured(job["read"], "clat_ns"),
        "write": _measured(job["write"], "clat_ns"),
        "fsync": _measured(job.get("sync", {}), "lat_ns"),
    }
    # Old versions fill their list of percentiles up with zeros.
    return {
        name: {float(percent): float(ns) for percent, ns in part["percentile"].items() if float(percent) > 0}
        for name, part in parts.items()
        if part.get("percentile")
    }


def job_metrics(job: Mapping[str, Any], parameters: FioParameters) -> dict[str, float | None]:
    """CPU of the job and the depth that it kept."""
    low, _ = depth_bounds(job, parameters.iodepth)
    return {"cpu_user": float(job["usr_cpu"]), "cpu_system": float(job["sys_cpu"]), "achieved_depth": low}


def depth_bounds(job: Mapping[str, Any], iodepth: int) -> tuple[float, float] | tuple[None, None]:
    """Mean number of requests in flight at submission: at least, at most. fio keeps classes, no mean."""
    shares = {_DEPTHS.get(key, (64, iodepth)): float(share) for key, share in job["iodepth_level"].items()}
    whole = sum(shares.values())
    if not whole:
        return None, None
    return (
        sum(min(low, iodepth) * share for (low, _), share in shares.items()) / whole,
        sum(min(high, iodepth) * share for (_, high), share in shares.items()) / whole,
    )


def measured_s(job: Mapping[str, Any], parameters: FioParameters) -> float:
    """Seconds that the rates are taken over, a final fsync included: those of the longer direction."""
    used = [name for name, is_used in (("read", parameters.reads), ("write", parameters.writes)) if is_used]
    return max(float(job[name]["runtime"]) for name in used) / 1000


def depth(job: Mapping[str, Any], iodepth: int) -> Depth | None:
    """What was asked for and reached; None where fio counted nothing."""
    low, high = depth_bounds(job, iodepth)
    if low is None or high is None:
        return None
    return Depth(asked=iodepth, at_least=low, at_most=high)


def rate_over_time(text: str) -> Rate | None:
    """The bandwidth of all jobs and directions together, from fio's log of them (HOWTO, "Log File Formats").

    A line is the mean in KiB/s over an interval that ends at a time in ms. fio appends one job after the other,
    leaves out intervals in which nothing moved, and the last one of each job unless it is whole.
    """
    jobs: list[dict[int, dict[str, float]]] = []
    last_ms = 0
    for fields in (line.split(", ") for line in text.splitlines()):
        if len(fields) < 3 or not (fields[0].isdigit() and fields[1].isdigit()):
            continue
        if not jobs or int(fields[0]) < last_ms:
            jobs.append({})
        last_ms = int(fields[0])
        jobs[-1].setdefault(last_ms, {})[fields[2]] = int(fields[1]) * 1024.0
    if not jobs:
        return None
    by_job = [_by_interval({end_ms: sum(parts.values()) for end_ms, parts in job.items()}) for job in jobs]
    values = tuple(map(sum, zip(*by_job, strict=False)))  # as far as all jobs go
    return Rate(what="bandwidth", interval_s=RATE_MS / 1000, values=values)


def _by_interval(job: Mapping[int, float]) -> list[float]:
    """One rate per interval of a job, from rates by the time at which they were taken.

    On a busy machine fio takes them late, and then each is of the time since the one before. Where there is none
    for longer than that, nothing moved.
    """
    values: list[float] = []
    taken_ms = 0
    for end_ms, rate in job.items():
        missing = round(end_ms / RATE_MS) - len(values)
        stood_still = end_ms - taken_ms > _LATE * RATE_MS
        values += [0.0 if stood_still else rate] * (missing - 1)
        values += [rate] * (missing > 0)
        taken_ms = end_ms
    return values


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _failure(error: int, said: str) -> FslabError:
    what = f"fio failed with {errno.errorcode.get(error, error)}" + (f": {said}" if said else "")
    if error == errno.ENOSPC:
        return NoSpaceError(what, hint="give the medium a larger size or the workload a smaller one")
    return ToolFailedError(what)
