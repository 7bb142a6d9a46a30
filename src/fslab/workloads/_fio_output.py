"""Reads fio's JSON document (HOWTO, "JSON output"): latencies in ns, bandwidth in B/s, run times in ms.

Pure functions. What fio does not say is None; what it says about jobs that failed is raised.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from typing import Any

from fslab.errors import FslabError, NoSpaceError, ToolFailedError, ToolOutputError
from fslab.record import Severity, ValidityWarning, WarningKind
from fslab.workloads._fio_parameters import FioParameters

SHORTEST_S = 0.5
_WHOLE_RUN = 0.9  # of the run time that was asked for
PERCENTILES = {
    "p50": "50.000000",
    "p90": "90.000000",
    "p99": "99.000000",
    "p99_9": "99.900000",
}
# Lower and upper ends of the classes that fio sorts the depth at each submission into (io_u_mark_depth).
_DEPTHS = {"1": (1, 1), "2": (2, 3), "4": (4, 7), "8": (8, 15), "16": (16, 31), "32": (32, 63)}


def job_of(text: str) -> Mapping[str, Any]:
    """The one job (or group of alike jobs) of the document; messages before and after it are skipped.

    NoSpaceError, ToolFailedError: fio says that the job failed; ToolOutputError: no such document.
    """
    start = 0 if text.startswith("{") else text.find("\n{") + 1
    try:
        document, _ = json.JSONDecoder().raw_decode(text, start)
        job: Mapping[str, Any] = document["jobs"][0]
        error = int(job["error"])
    except (ValueError, LookupError, TypeError) as problem:
        raise ToolOutputError(
            f"fio wrote no JSON document with a job: {text.strip()[-200:] or 'nothing'}", where="fio.json"
        ) from problem
    if error:
        raise _failure(error, text[:start].strip())
    return job


def direction_metrics(job: Mapping[str, Any], direction: str) -> dict[str, float | None]:
    """IOPS, bandwidth, completion latency of one direction, ``read`` or ``write``, and its whole latency.

    fio counts from submission to completion (clat) and from before submission (lat). Where a request
    already blocks in io_submit(2), as writes that extend a file do, only the latter holds the time it took,
    and the time of submission (slat, of asynchronous engines only) shows it.
    """
    part = job[direction]
    whole, submission = part.get("lat_ns", {}), part.get("slat_ns", {})
    latency = part.get("clat_ns", {})
    percentiles = latency.get("percentile", {})
    # fio writes zeros where it measured nothing, and leaves out the percentiles.
    seen = bool(latency.get("N"))
    return {
        f"{direction}_iops": float(part["iops"]) if part["total_ios"] else None,
        f"{direction}_bandwidth": float(part["bw_bytes"]) if part["total_ios"] else None,
        f"{direction}_lat_mean": float(whole["mean"]) if whole.get("N") else None,
        f"{direction}_slat_mean": float(submission["mean"]) if submission.get("N") else None,
        f"{direction}_clat_mean": float(latency["mean"]) if seen else None,
        **{
            f"{direction}_clat_{name}": _number(percentiles.get(key)) if seen else None
            for name, key in PERCENTILES.items()
        },
        f"{direction}_clat_max": float(latency["max"]) if seen else None,
    }


def sync_metrics(job: Mapping[str, Any]) -> dict[str, float | None]:
    """Latency of fsync and fdatasync, which fio keeps apart from that of the writes."""
    latency = job.get("sync", {}).get("lat_ns", {})
    seen = bool(latency.get("N"))
    return {
        "fsync_mean": float(latency["mean"]) if seen else None,
        "fsync_p99": _number(latency.get("percentile", {}).get(PERCENTILES["p99"])) if seen else None,
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


def warnings(job: Mapping[str, Any], parameters: FioParameters) -> tuple[ValidityWarning, ...]:
    """What casts doubt on the run, as far as fio's own figures show it."""
    found = (
        _too_short(measured_s(job, parameters), parameters),
        _too_shallow(job, parameters),
        _written_again(job, parameters),
        _not_asynchronous(parameters),
    )
    return tuple(warning for warning in found if warning)


def _too_short(seconds: float, parameters: FioParameters) -> ValidityWarning | None:
    """Invalid only where the time was set: of a set amount of work the time is the outcome, and leaving out
    what was quick would leave out the best trials of the fastest file system."""
    timed = parameters.timed and parameters.runtime_s is not None
    enough_s = max(SHORTEST_S, _WHOLE_RUN * (parameters.runtime_s or 0)) if timed else SHORTEST_S
    if seconds >= enough_s:
        return None
    return ValidityWarning(
        kind=WarningKind.TOO_SHORT,
        severity=Severity.INVALID if timed else Severity.DOUBT,
        message=f"fio measured for {seconds:.3f} s only",
        hint="raise size, or set a runtime",
        data={"measured_s": seconds, "shortest_s": enough_s},
    )


def _too_shallow(job: Mapping[str, Any], parameters: FioParameters) -> ValidityWarning | None:
    low, high = depth_bounds(job, parameters.iodepth)
    if parameters.iodepth == 1 or high is None or high >= parameters.iodepth / 2:
        return None
    return ValidityWarning(
        kind=WarningKind.DEPTH_NOT_REACHED,
        severity=Severity.INVALID,
        message=f"{parameters.iodepth} requests in flight were asked for, {high:.1f} were reached at most",
        hint="set direct: true or ioengine: io_uring, or spread the load over numjobs",
        data={"asked": parameters.iodepth, "at_least": low, "at_most": high},
    )


def _written_again(job: Mapping[str, Any], parameters: FioParameters) -> ValidityWarning | None:
    """Sequential writes for a given time start over at the end of the file, and then no longer allocate."""
    if parameters.in_place or parameters.random or not parameters.writes:
        return None
    passes = float(job["write"]["io_bytes"]) / parameters.total_bytes
    if passes <= 1:
        return None
    return ValidityWarning(
        kind=WarningKind.TOOL_WARNING,
        # Buffered, the later passes rewrite what is still in memory.
        severity=Severity.NOTE if parameters.direct else Severity.DOUBT,
        message=f"the files were written {passes:.1f} times over; only the first pass allocates",
        hint="leave out runtime to write each file once",
        data={"passes": passes},
    )


def _not_asynchronous(parameters: FioParameters) -> ValidityWarning | None:
    """Buffered requests block in io_submit(2): fio counts a queue that the kernel never sees."""
    if parameters.direct or parameters.iodepth == 1 or parameters.engine != "libaio":
        return None
    return ValidityWarning(
        kind=WarningKind.TOOL_WARNING,
        severity=Severity.NOTE,
        message="libaio handles buffered requests one by one; the depth that fio reports is its own queue",
        hint="set direct: true or ioengine: io_uring",
        data={"iodepth": parameters.iodepth},
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _failure(error: int, said: str) -> FslabError:
    what = f"fio failed with {errno.errorcode.get(error, error)}" + (f": {said}" if said else "")
    if error == errno.ENOSPC:
        return NoSpaceError(what, hint="give the medium a larger size or the workload a smaller one")
    return ToolFailedError(what)
