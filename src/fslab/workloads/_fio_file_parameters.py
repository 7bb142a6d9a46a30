"""Parameters of a job file of fio: its jobs, with what the study gives beside the file. Pure.

fio gets a new file that is made from the result, so that fslab and fio cannot read a line differently.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, count
from typing import ClassVar, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from fslab.cell import Scalar
from fslab.units import parse_duration, parse_size
from fslab.workloads import Parameters
from fslab.workloads._fio_amounts import scaled
from fslab.workloads._fio_file_reading import MOST_JOBS, JobFile, read_jobs, refusal
from fslab.workloads._fio_job_checks import JobSection
from fslab.workloads._fio_objections import spelled
from fslab.workloads._fio_options import LEFT_OUT, directions, read_share, writes_through, writes_zeros
from fslab.workloads._fio_parameters import VARIABLES, mistake
from fslab.workloads._fio_phases import Start, start_of
from fslab.workloads._fio_places import file_names, number
from fslab.workloads._fio_requests import DEFAULT_REQUEST_BYTES

# fio reads a job file in pieces of 4,096 bytes, or 8,192 (OPT_LEN_MAX): what follows in a line is further lines to it.
LONGEST_LINE_BYTES = 4000


@dataclass(frozen=True, kw_only=True, slots=True)
class FileJob:
    """One job with all options that apply to it, by fio's names. None: an option without a value.

    ``label``: prefix of its metrics, empty for the only job.
    """

    name: str
    label: str
    options: Mapping[str, str | None]

    def number(self, key: str, default: int) -> int:
        """Return the value of an option that is a whole number; 1 for an option without a value."""
        return number(self.options, key, default)

    @property
    def lines(self) -> tuple[str, ...]:
        """Its section in a job file."""
        options = (key if value is None else f"{key}={value}" for key, value in self.options.items())
        return (f"[{self.name}]", "new_group", *options)

    @property
    def start(self) -> Start:
        return start_of(self.name, self.options)

    @property
    def mode(self) -> str:
        """``rw`` without its offset modifier."""
        return (self.options.get("rw") or "read").partition(":")[0]

    @property
    def read_share(self) -> float:
        """The share of reads, from 0 to 1."""
        return read_share(self.mode, self.options)

    @property
    def directions(self) -> tuple[str, ...]:
        """``read``, ``write`` or both."""
        return directions(self.mode, self.options)

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
        return bool(self.number("direct", 0))

    @property
    def iodepth(self) -> int:
        return self.number("iodepth", 1)

    @property
    def engine(self) -> str:
        """Its I/O engine; psync is fio's default."""
        return self.options.get("ioengine") or "psync"

    @property
    def zeros(self) -> bool:
        return "write" in self.directions and writes_zeros(self.options)

    @property
    def request_bytes(self) -> tuple[int, ...]:
        """Sizes of reads and of writes. An empty one, as in ``,8k``, is fio's default. A third is for trims."""
        sizes = (self.options.get("bs") or "").split(",")[:2]
        return tuple(parse_size(size) if size else DEFAULT_REQUEST_BYTES for size in sizes)

    @property
    def timed(self) -> bool:
        return self.runtime_s is not None and self.options.get("time_based", "0") != "0"

    @property
    def ends_early(self) -> bool:
        """Whether fio may end it before its run time is over."""
        return "steadystate" in self.options

    @property
    def runtime_s(self) -> float | None:
        """Time limit in seconds; None for a fixed amount of work."""
        written = self.options.get("runtime")
        return parse_duration(written) if written else None

    @property
    def file_names(self) -> frozenset[str]:
        return file_names(self.name, self.options)

    @property
    def bytes(self) -> int:
        """How much its processes transfer in one pass over their files."""
        one = self.options.get("size")
        if one is None:
            files = (self.options.get("filesize") or "").rpartition("-")[2]
            return parse_size(files) * self.number("nrfiles", 1) * self.number("numjobs", 1)
        return parse_size(one) * self.number("numjobs", 1)


class FioFileParameters(Parameters):
    """A job file, and options that take the place of those of all its jobs."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Scalar]
    file_keys: ClassVar[frozenset[str]] = frozenset({"file"})
    nested_keys: ClassVar[frozenset[str]] = frozenset({"variables"})

    file: str = Field(description="a job file")
    file_text: str
    scale: float = Field(default=1.0, gt=0, le=1000)

    @property
    def given(self) -> dict[str, str]:
        """The options beside the file, in fio's spelling."""
        return {
            key: spelled(value)
            for key, value in (self.model_extra or {}).items()
            if not key.startswith(VARIABLES) and key not in LEFT_OUT
        }

    @property
    def read(self) -> JobFile:
        """What the file contains."""
        extra = self.model_extra or {}
        variables = tuple(
            (key.removeprefix(VARIABLES), spelled(value))
            for key, value in extra.items()
            if key.startswith(VARIABLES)
        )
        return _read(self.file, self.file_text, frozenset(self.given), variables)

    @cached_property
    def jobs(self) -> tuple[FileJob, ...]:
        return tuple(_labelled(self.read.sections, self.scale, self.given))

    @model_validator(mode="wrap")
    @classmethod
    def _check_together(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Report all that is refused at once."""
        checked = handler(data)
        extra = {key: value for key, value in (checked.model_extra or {}).items() if key not in LEFT_OUT}
        wrong = {
            key: why
            for key, value in extra.items()
            if not key.startswith(VARIABLES) and (why := _refusal_beside(key, spelled(value)))
        }
        mistakes = [mistake(key, extra[key], why) for key, why in wrong.items()]
        refused = checked.read.refused or [why for job in checked.jobs for why in _too_long(job)]
        mistakes += [mistake("file", checked.file, why) for why in refused]
        if mistakes:
            raise ValidationError.from_exception_data(cls.__name__, mistakes)
        return checked


@lru_cache(maxsize=256)
def _read(file: str, text: str, given: frozenset[str], variables: tuple[tuple[str, str], ...]) -> JobFile:
    return read_jobs(file, text, given=given, variables=dict(variables))


def _refusal_beside(key: str, value: str) -> str | None:
    if not value.isprintable() or re.search(r"[$`\\;#]", value):
        return "$, `, \\, ;, # and control characters are not allowed"
    return refusal(key, value)


def _too_long(job: FileJob) -> Iterator[str]:
    for line in job.lines:
        if len(line.encode("utf-8", "replace")) > LONGEST_LINE_BYTES:
            what = f"'{line[:40]}…' is longer than {LONGEST_LINE_BYTES} bytes: shorten it"
            yield f"job '{job.name[:40]}': {what}, or fio reads its end as other options"


def _labelled(sections: list[JobSection], scale: float, given: Mapping[str, str]) -> Iterator[FileJob]:
    used = {"total", *(f"phase_{number}" for number in range(1, MOST_JOBS + 1))}
    for index, section in enumerate(sections):
        label = re.sub(r"[^a-z0-9]+", "_", section.name.lower()).strip("_") or "job"
        numbered = (f"{label}_{number}" for number in count(index + 1))
        label = next(each for each in chain((label,), numbered) if each not in used)
        used.add(label)
        changed = {} if scale == 1 else {k: str(v.value) for k, v in scaled(section.options, scale).items()}
        yield FileJob(
            name=section.name,
            label=label if len(sections) > 1 else "",
            options={**section.options, **changed, **given},
        )
