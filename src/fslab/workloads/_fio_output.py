"""Parses fio's JSON document (HOWTO, "JSON output"): latencies in ns, bandwidth in B/s, run times in ms.

Pure functions. A value that fio does not report is None. A failed job that fio reports raises an error.
"""

import errno
import re
from collections.abc import Mapping
from typing import Any

from fslab import untrusted_text
from fslab.errors import FULL_DISK, SIZES_HINT, FslabError, NoSpaceError, ToolFailedError, ToolOutputError
from fslab.system.tool_messages import one_line
from fslab.trial_record import Metric
from fslab.units import Direction, Unit
from fslab.validity.facts import Depth
from fslab.workloads._fio_one_job import OneJob

_ENDED = re.compile(r"^fio: pid=\d+, got signal=(\d+)", re.MULTILINE)  # reap_threads in backend.c
_NO_LATENCIES = frozenset(
    {"gtod_reduce", "disable_lat"}
)  # with a value of 0, too: rather no check than a false one
PERCENTILES = {
    "p50": "50.000000",
    "p90": "90.000000",
    "p99": "99.000000",
    "p99_9": "99.900000",
}
# Lower and upper bounds of the classes in which fio counts the queue depth at each submission (io_u_mark_depth).
_DEPTHS = {"1": (1, 1), "2": (2, 3), "4": (4, 7), "8": (8, 15), "16": (16, 31), "32": (32, 63)}


def job_of(text: str) -> Mapping[str, Any]:
    """Return the only job (or group of equal jobs) of the document. Raises like ``jobs_of``."""
    return jobs_of(text)[0]


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
    except (ValueError, LookupError, TypeError) as problem:
        raise ToolOutputError(
            f"fio wrote no JSON document with a job; it wrote: {one_line(text) or 'nothing'}",
            where="fio.json",
        ) from problem
    for error in filter(None, errors):
        raise _failure(error, text[:start].strip())
    if ended := _ENDED.search(text[:start]):
        # fio itself then exits with 0, and counts what the other processes did.
        raise ToolFailedError(f"a process of fio was ended by signal {ended[1]}: its figures are missing")
    if any("clat" in job.get(direction, {}) for job in jobs for direction in ("read", "write")):
        what = (
            f"{document.get('fio version', 'this fio')} reports latencies in µs; fslab needs fio 3.0 or newer"
        )
        raise ToolOutputError(what, where="fio.json", hint="install a newer fio")
    if idle := [job for job in jobs if not any(_transfers(job, name) for name in ("read", "write"))]:
        # With exitall, such a job ended, or did not start, because another one had ended.
        raise ToolFailedError(
            f"job '{idle[0].get('jobname')}' transferred nothing in the measured time",
            hint="give it more time or work; delete 'exitall' if it waits for another job",
        )
    common = document.get("global options", {})
    if early := [job for job in jobs if _ended_in_ramp(job, {**common, **job.get("job options", {})})]:
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


def _transfers(job: Mapping[str, Any], direction: str) -> bool:
    return bool(job.get(direction, {}).get("total_ios", 1))


def declared(job: OneJob) -> list[Metric]:
    """Return the metrics of a job: ``figures``."""
    found = [metric for direction in job.directions for metric in _declared_of(direction)]
    found += [_latency("fsync_mean"), _latency("fsync_p99")] if job.syncs else []
    # CPU shares refer to the job's run time: a job that does more work per second may use more CPU.
    shares = ("cpu_user", "cpu_system")
    return found + [Metric(name=name, unit=Unit.PERCENT, better=Direction.NEITHER) for name in shares]


def _declared_of(direction: str) -> list[Metric]:
    latencies = ("lat_mean", "slat_mean", *(f"clat_{name}" for name in ("mean", *PERCENTILES, "max")))
    return [
        Metric(name=f"{direction}_iops", unit=Unit.IOPS),
        Metric(name=f"{direction}_bandwidth", unit=Unit.BYTES_PER_SECOND),
        *(_latency(f"{direction}_{name}") for name in latencies),
    ]


def _latency(name: str) -> Metric:
    return Metric(name=name, unit=Unit.NANOSECONDS, better=Direction.LOWER)


def figures(report: Mapping[str, Any], job: OneJob) -> dict[str, float | None]:
    """Return the figures of a job: rates and latencies of each direction, latency of fsync, and CPU shares."""
    found: dict[str, float | None] = {}
    for direction in job.directions:
        found |= _direction_metrics(report, direction)
    found |= _sync_metrics(report) if job.syncs else {}
    return found | {"cpu_user": float(report["usr_cpu"]), "cpu_system": float(report["sys_cpu"])}


def _direction_metrics(job: Mapping[str, Any], direction: str) -> dict[str, float | None]:
    """Return IOPS, bandwidth and latencies of one direction, ``read`` or ``write``.

    fio measures the completion latency (clat) from submission, and the total latency (lat) from before submission. If a
    request already blocks in io_submit(2), as writes that extend a file do, only lat includes that time. The submission
    latency (slat, asynchronous engines only) shows it.
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
    """Return the latencies of one kind; empty if none was measured.

    fio writes zeros if none was measured. fio 3.19 reports the number of samples (N), 3.16 does not. Without N, there
    were samples if there was any I/O and the maximum is above 0 (with synchronous engines, the submission latency is
    0).
    """
    found: Mapping[str, Any] = part.get(name, {})
    count = found.get("N", part.get("total_ios", 0) if found.get("max") else 0)
    return found if count else {}


def _bytes_per_s(part: Mapping[str, Any]) -> float:
    """Return the bandwidth in B/s. fio 3.1 and older report only KiB/s."""
    return float(part["bw_bytes"]) if "bw_bytes" in part else float(part["bw"]) * 1024


def _sync_metrics(job: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the latency of fsync and fdatasync. fio reports it separately from that of the writes."""
    latency = _measured(job.get("sync", {}), "lat_ns")
    return {
        "fsync_mean": _number(latency.get("mean")),
        "fsync_p99": _number(latency.get("percentile", {}).get(PERCENTILES["p99"])),
    }


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


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _failure(error: int, said: str) -> FslabError:
    what = f"fio failed with {errno.errorcode.get(error, error)}" + (f": {said}" if said else "")
    if error in FULL_DISK:
        return NoSpaceError(what, hint=SIZES_HINT)
    return ToolFailedError(what)
