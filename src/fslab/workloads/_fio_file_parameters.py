"""Splits a job file of fio into jobs, and rejects what would reach outside the test directory. Pure.

fio gets a new file that is made from the result, so that fslab and fio cannot read a line differently.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import ClassVar

from pydantic import Field, field_validator

from fslab.units import parse_duration, parse_size
from fslab.workloads import Parameters
from fslab.workloads._fio_options import ALIASES, ASYNC_ENGINES, SYNC_ENGINES, writes_through
from fslab.workloads._fio_parameters import DEFAULT_REQUEST_BYTES, objection

_SECTION = re.compile(r"\[([^\[\]/$`\\.][^\[\]/$`\\]*)\]")
_GLOBAL = "global"
MOST_JOBS = 32
# Options that fslab sets for a single job, but that a job file may set itself.
_OWN = frozenset(
    {"filename", "stonewall", "wait_for", "filesize", "ramp_time", "invalidate", "pre_read", "randseed", "randrepeat",
     "allrandrepeat", "unique_filename"}
)  # fmt: skip
_OURS = frozenset({"group_reporting", "new_group"})  # fslab always makes one group for each job


@dataclass(frozen=True, kw_only=True, slots=True)
class FileJob:
    """One job with all options that apply to it, by fio's names. None: an option without a value.

    ``label``: prefix of its metrics, empty for the only job. ``phase``: how many of the jobs up to this one waited for
    all jobs before them (``stonewall``).
    """

    name: str
    label: str
    phase: int
    options: Mapping[str, str | None]

    def number(self, key: str, default: int) -> int:
        """Return the value of an option that is a whole number; 1 for an option without a value."""
        value = self.options.get(key, "1" if key in self.options else None)
        return default if value is None or not value.isdecimal() else int(value)

    @property
    def mode(self) -> str:
        """``rw`` without its offset modifier."""
        return (self.options.get("rw") or "read").partition(":")[0]

    @property
    def directions(self) -> tuple[str, ...]:
        """``read``, ``write`` or both."""
        if self.mode in {"rw", "readwrite", "randrw"}:
            return ("read", "write")
        return ("read",) if self.mode in {"read", "randread"} else ("write",)

    @property
    def random(self) -> bool:
        return self.mode.startswith("rand")

    @property
    def syncs(self) -> bool:
        """Whether fsync or fdatasync follows writes during the run."""
        return bool(self.number("fsync", 0) or self.number("fdatasync", 0))

    @property
    def flushed(self) -> bool:
        """Whether written data reaches the device within the run time. mmap ignores ``sync``."""
        through = writes_through(self.options.get("sync"), self.options.get("ioengine"))
        return self.syncs or bool(self.number("end_fsync", 0)) or through

    @property
    def direct(self) -> bool:
        return bool(self.number("direct", 0)) or self.options.get("buffered") == "0"

    @property
    def request_bytes(self) -> tuple[int, ...]:
        """Sizes of reads and of writes. An empty one, as in ``,8k``, is fio's default. A third is for trims."""
        sizes = (self.options.get("bs") or "").split(",")[:2]
        return tuple(parse_size(size) if size else DEFAULT_REQUEST_BYTES for size in sizes)

    @property
    def runtime_s(self) -> float | None:
        """Time limit in seconds; None for a fixed amount of work."""
        written = self.options.get("runtime")
        return parse_duration(written) if written else None

    @property
    def bytes(self) -> int:
        """Maximum size of all its files together."""
        one = self.options.get("size")
        if one is None:
            files = (self.options.get("filesize") or "").rpartition("-")[2]
            return parse_size(files) * self.number("nrfiles", 1) * self.number("numjobs", 1)
        return parse_size(one) * self.number("numjobs", 1)


class FioFileParameters(Parameters):
    """A job file instead of options."""

    file_keys: ClassVar[frozenset[str]] = frozenset({"file"})

    file: str = Field(description="a job file")
    file_text: str

    @property
    def jobs(self) -> tuple[FileJob, ...]:
        return jobs_of(self.file_text)

    @field_validator("file_text")
    @classmethod
    def _understood(cls, value: str) -> str:
        for job in jobs_of(value):
            try:
                _ = job.bytes, job.runtime_s
            except ValueError as error:
                raise ValueError(f"job '{job.name}' must give its 'size' in bytes: {error}") from error
        return value


def jobs_of(text: str) -> tuple[FileJob, ...]:
    """Return the jobs of a file. ValueError, with the line, for anything that is not understood or not allowed."""
    common: dict[str, str | None] = {}
    found: list[tuple[str, dict[str, str | None]]] = []
    options: dict[str, str | None] | None = None
    for number, line in _lines(text):
        if line.startswith("["):
            section = _SECTION.fullmatch(line)
            if section is None:
                raise ValueError(
                    f"line {number}: '{line}' is not a section name that fslab accepts, such as [job]"
                )
            options = common if section[1] == _GLOBAL else dict(common)
            if section[1] != _GLOBAL:
                found.append((section[1], options))
            continue
        if options is None:
            raise ValueError(f"line {number}: '{line}' comes before the first section")
        key, value = _option(number, line)
        if key not in _OURS:
            options[key] = value
    if not 1 <= len(found) <= MOST_JOBS:
        raise ValueError(f"the file has {len(found)} jobs; 1 to {MOST_JOBS} are possible")
    return tuple(_labelled(found))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.rstrip("\r").replace("\t", " ").isprintable():
            raise ValueError(f"line {number}: control characters are not allowed")
        if "include " in line[:8]:
            raise ValueError(f"line {number}: a job file may not include another file")
        kept = re.split("[;#]", line, maxsplit=1)[0].strip(" \t\r")
        if kept:
            yield number, kept


def _option(number: int, line: str) -> tuple[str, str | None]:
    key, equals, value = (part.strip(" \t") for part in line.partition("="))
    key = ALIASES.get(key, key) if key != "buffered" else key
    why = _refusal(key, value) if key not in _OURS else None
    if why:
        raise ValueError(f"line {number}: {key}: {why}")
    return key, value if equals else None


def _refusal(key: str, value: str) -> str | None:
    if re.search(r"[$`\\]", value):
        return "fslab does not accept $, ` and \\: fio would expand the value"
    if key == "filename":
        names = value.split(":")
        outside = any(not name or "/" in name or name in {".", "..", "-"} for name in names)
        return "must be plain file names, without '/'" if outside else None
    if key == "ioengine" and value not in SYNC_ENGINES | ASYNC_ENGINES:
        known = ", ".join(sorted(SYNC_ENGINES | ASYNC_ENGINES))
        return f"fslab does not support the I/O engine '{value}'; supported: {known}"
    if key == "rw" and "trim" in value:
        return "fio trims block devices only, not files"
    if key in _OWN or key == "buffered":
        return None
    return objection(key, value)


def _labelled(found: list[tuple[str, dict[str, str | None]]]) -> Iterator[FileJob]:
    phase, used = 0, {"total"}
    for index, (name, options) in enumerate(found):
        phase += "stonewall" in options and index > 0
        label = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "job"
        numbered = (f"{label}_{number}" for number in count(index + 1))
        label = next(each for each in chain((label,), numbered) if each not in used)
        used.add(label)
        yield FileJob(name=name, label=label if len(found) > 1 else "", phase=phase, options=options)
