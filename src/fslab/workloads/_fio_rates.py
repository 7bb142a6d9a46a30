"""fio's log of the bandwidth of a job (HOWTO, "Log File Formats"): the options that ask for it, and its reading. Pure.

fio takes one value per interval, in a thread of its own: no request takes longer because of it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from fslab.validity.facts import Rate
from fslab.workloads._fio_one_job import OneJob

INTERVAL_MS = 200
_LONG_ENOUGH_S = 8.0  # shortest run with a useful rate over time
_LATE = 2.5  # intervals: maximum delay of fio; a longer gap means that nothing was transferred
_SUFFIX = "_bw.log"  # that fio adds if all processes of a job share a log


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
