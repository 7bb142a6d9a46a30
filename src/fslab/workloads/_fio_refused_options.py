"""What cannot be passed to fio: names of options, single values, and what does not fit together. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from posixpath import normpath

from fslab.cell import Scalar
from fslab.errors import nearest, similar
from fslab.units import plain_size
from fslab.workloads import MOST_AT_ONCE, SECTOR_BYTES
from fslab.workloads._fio_amounts import LARGEST_OF, Options, named_files, one_file
from fslab.workloads._fio_one_job import OneJob
from fslab.workloads._fio_options import (
    ALIASES,
    ASYNC_ENGINES,
    DIRECTORY,
    EXIT_WHAT,
    EXITALL,
    GROUP,
    KNOWN,
    LEFT_OUT,
    MAPPING,
    METADATA_ENGINES,
    MODE,
    ORDER,
    REFUSED,
    SYNC_ENGINES,
    ZONED,
    ZONES,
)

# From the first digit of a number only: else, each digit of a long one would be tried.
_WITH_BYTES = re.compile(r"(?<!\d)\d+(?:\.\d+)?\s*[kmgt]i?b(?!\w)", re.IGNORECASE)
_ONE_OR_MORE = re.compile(r"[\d.,:/%\skmgtib-]+", re.IGNORECASE)  # sizes, ranges and shares: 4KiB/60:64KiB/40
AT_ONCE = frozenset(
    {"numjobs", "iodepth", "verify_async"}
)  # processes, and the requests in flight and threads of each
COUNTS = AT_ONCE | {"nrfiles", "loops"}  # loops=-1 is 2^32 - 1 to fio
_AT_LEAST_ONE = COUNTS - {"verify_async", "loops"}
# fio 3.33 reads 1.5g and 1 g as 1 byte, and 1.5 as 1 s.
_CUT_OFF = re.compile(r"\d(?:\.\d|\s+[a-z])", re.IGNORECASE)
# To fio 3.33, 30sec and 1m30s are microseconds, and 30 ms are 30 s.
_TIME = re.compile(r"\d+(?:us|usec|ms|msec|[smhd])?", re.IGNORECASE)
_TIMES = frozenset(
    {
        "latency_target", "latency_window", "max_latency", "ramp_time", "runtime", "startdelay",
        "steadystate_duration", "steadystate_ramp_time", "thinktime", "thinktime_iotime", "thinktime_spin",
    }
)  # fmt: skip
_WITH_POINT = frozenset(
    {
        "buffer_pattern", "description", "file_service_type", "filename", "filename_format", "latency_percentile",
        "mem", "name", "random_distribution", "steadystate", "verify_pattern",
    }
)  # fmt: skip
_OF_SIZES = frozenset({"size", "filesize", "nrfiles", "filename", "rw", "bs", *LARGEST_OF})
_JOB_FILE = frozenset({"job", "jobs", "jobfile", "job_file"})
_NO_PATHS = frozenset({"mem", "buffer_pattern", "verify_pattern", "filename_format"})


def spelled(value: Scalar) -> str:
    """Return the value in fio's spelling: fio reads ``4KiB`` as 4,000 bytes.

    A bare ``10m`` may be minutes and is not changed.
    """
    if isinstance(value, bool):
        return str(int(value))
    text = str(value)
    return _WITH_BYTES.sub(lambda size: plain_size(size[0]), text) if _ONE_OR_MORE.fullmatch(text) else text


def objection(key: str, value: object) -> str | None:
    """Return why an option cannot be passed to fio, and what to do; None if it can, or if it is left out."""
    if key in REFUSED:
        return f"not allowed: {REFUSED[key]}"
    if key in LEFT_OUT | {"scale", "file", "file_text"}:
        return None
    if key in ORDER:
        return "orders the jobs of a job file: use 'file', or several workloads"
    if key in ALIASES:
        return f"write it as '{ALIASES[key]}'"
    if key in _JOB_FILE:
        return "fio has no such option: name a job file with 'file'"
    if key not in KNOWN:
        near = similar(key.lower(), KNOWN)
        advice = f"did you mean '{near}'?" if near else "delete it, or see fio --cmdhelp=all"
        return f"fio has no such option: {advice}"
    return count_mistake(key, str(value)) if key in COUNTS else _refused_value(key, str(value))


def unsupported(key: str, value: str) -> str | None:
    """Return why fslab does not use a mode or an I/O engine; None if it does."""
    engines = SYNC_ENGINES | ASYNC_ENGINES
    if key == "rw" and "trim" in value:
        return "fio trims block devices only, not files"
    if key == "rw" and not MODE.fullmatch(value):
        return f"'{value}' is not a mode of fio: read, write, randread, randwrite, rw, randrw"
    if key == "ioengine" and value in METADATA_ENGINES:
        return f"'{value}' transfers no data, yet fio reports a bandwidth for it: use 'tool: engine' instead"
    if key == "ioengine" and value not in engines:
        return f"fslab does not support the I/O engine '{value}': {nearest(value, engines)}"
    return None


def _refused_value(key: str, value: str) -> str | None:
    if key == "filename" and any(_reaches_outside(name) for name in value.split(":")):
        return (
            "must be plain file names, without '/' and of at most 255 bytes: the files are on the file system "
            "under test"
        )
    if key in _NO_PATHS and re.search(r"[/']", value):
        return "file names are not allowed here: delete the line"
    if key == "zonemode" and value == "zbd":
        return f"not allowed: {ZONED}"
    if key == "allow_file_create" and value in {"0", "False"}:
        return "fslab starts with an empty directory, in which fio has to make the files: delete the line"
    return None


def _reaches_outside(name: str) -> bool:
    return not name or "/" in name or name in {".", "..", "-"} or len(name.encode("utf-8", "replace")) > 255


def cut_off(key: str, value: str) -> str | None:
    """Return why a number or a time cannot be passed to fio, which would cut it off, and what to do; else None."""
    if key in _TIMES and not all(_TIME.fullmatch(part) for part in re.split("[-,]", value)):
        return (
            f"fio reads '{value}' as another time: write a whole number and us, ms, s, m, h or d, such as 90s"
        )
    if key in _WITH_POINT or not _CUT_OFF.search(value):
        return None
    return f"fio reads only the first digits of '{value}': write a whole number, and its unit without a space"


def count_mistake(key: str, value: str) -> str | None:
    """Return why a value is not a valid plain number, else None. fio reads ``4k`` as 4,096 jobs."""
    if not re.fullmatch("[0-9]+", value):
        return f"'{value}' is not a whole number in digits"
    if key in _AT_LEAST_ONE and not int(value):
        return "must be at least 1"
    if key in AT_ONCE and int(value) > MOST_AT_ONCE:
        return f"must be at most {MOST_AT_ONCE}, not {value}"
    return None


def conflicts(job: OneJob, before: Sequence[OneJob] = ()) -> Iterator[tuple[str, frozenset[str], str]]:
    """Yield what cannot run in a job because of its other options, or of the jobs before it: the option, those that
    decide it if they are given beside a job file, and why, with what to do."""
    options, used, names = job.options, job.directions, [other.name for other in before]
    if job.direct:
        yield from _of_direct(job)
    if options.get("zonemode", "none") == "none":
        for key in sorted(ZONES & options.keys()):
            yield (
                key,
                frozenset({"zonemode"}),
                "has no effect without zonemode=strided: add that, or delete it",
            )
    if "read" in used and job.number("create_on_open", 0):
        yield "create_on_open", frozenset({"rw", "create_on_open"}), "with it, fio cannot read: delete it"
    sizes = job.request_bytes
    request = max((sizes[0] if each == "read" else sizes[-1] for each in used), default=0) if sizes else 0
    if options.keys().isdisjoint(LARGEST_OF) and 0 < one_file(options) < request:
        what = f"a request of {request} bytes is larger than a file of {one_file(options)}, and fio transfers nothing"
        yield "bs", _OF_SIZES, f"{what}: lower 'bs', or raise 'size'"
    checks = options.get("verify", options.get("verify_pattern")) not in {None, "0", "null"}
    only_checks = checks and ("write" not in used or options.get("verify_only", "0") != "0")
    written = (other.file_names for other in before if "write" in other.directions)
    if only_checks and job.file_names.isdisjoint(chain(*written)):
        what = "checks files that nothing writes before: write them, with the same 'filename' and 'verify'"
        yield "verify", frozenset({"verify", "verify_only", "rw", "filename"}), f"{what}, or delete it"
    if job.after is None:
        return
    if job.after not in names:
        yield "wait_for", frozenset(), f"no job '{job.after}' before '{job.name}': correct the name"
    elif [*names, job.name].count(job.after) > 1:
        yield "wait_for", frozenset(), f"several jobs are named '{job.after}': rename all but one of them"


def _of_direct(job: OneJob) -> Iterator[tuple[str, frozenset[str], str]]:
    if any(size % SECTOR_BYTES for size in job.request_bytes):
        yield "bs", frozenset({"bs", "direct"}), f"must be a multiple of {SECTOR_BYTES} bytes with direct I/O"
    if job.engine == MAPPING:
        what = "has no effect with the I/O engine mmap, which is in the page cache"
        yield "direct", frozenset({"direct", "ioengine"}), f"{what}: delete it, or use another engine"


def of_exits(jobs: Sequence[OneJob]) -> Iterator[str]:
    """Yield the jobs that would end those of their group, in a file with groups of its own."""
    for job in jobs:
        if EXITALL in job.options and (job.options.get(EXIT_WHAT) or GROUP) == GROUP:
            what = "exitall: new_group limits which jobs it ends, and here each job is a group"
            yield f"{job.place}: {what}: add exit_what=stonewall (all that run) or exit_what=all"


def of_directories(jobs: Sequence[OneJob], given: frozenset[str]) -> Iterator[str]:
    """Yield the files of fio that would be one file here, where all directories are one, with their places.

    Of several directories, each process of a job uses the next one (set_name_idx in fio's filesetup.c). Files of all
    jobs are in the directory of all jobs.
    """
    known: dict[str, str] = {}
    for job in jobs if "filename" not in given else ():
        processes = MOST_AT_ONCE if "numjobs" in given else job.number("numjobs", 1)
        common = named_files(job.common)
        own = named_files(job.options)[len(common) :]
        for name in sorted(job.file_names):
            most = 1 if name.endswith("/") else processes
            used = _directories_of(job.common)[:most] if name in common else []
            used += _directories_of(job.options)[:most] if name in own or name not in common else []
            other = next((each for each in used if known.setdefault(name, each) != each), None)
            if other is not None:
                what = f"{name.partition('/')[0]} in {known[name]} and in {other} would be one file"
                yield f"{job.place}: {what}: rename one of them, or delete 'filename'"
                break


def _directories_of(options: Options) -> list[str]:
    return [normpath(each) for each in re.split(r"(?<!\\):", options.get(DIRECTORY) or ".")]
