"""Parameters of fio: the keys that fslab interprets, and what contradicts another one.

Values are passed to fio as they are written. Nothing here runs fio or touches a disk.
"""

import re
from functools import cached_property
from typing import ClassVar, Self

from pydantic import (
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from fslab.cell import Scalar
from fslab.units import SomeSize, parse_duration, parse_size
from fslab.workloads import MOST_AT_ONCE, Text, mistake, why_of
from fslab.workloads._fio_one_job import JobParameters, OneJob, all_files
from fslab.workloads._fio_options import (
    LEFT_OUT,
    MIXED,
    SYNC_ENGINES,
    directions,
)
from fslab.workloads._fio_refused_options import (
    conflicts,
    count_mistake,
    cut_off,
    objection,
    spelled,
    unsupported,
)

_TIME = re.compile(r"\d+(?:us|ms|[smhd])?")  # fio 3.33 cuts fractions: 1.5 is 1 s
VARIABLES = "variables."  # prefix of the keys that hold the variables of a job file


class FioParameters(JobParameters):
    """Job options by fio's own names. Options that are not in the table are passed to fio unchanged.

    With `file: job.fio`, the jobs of a job file run, in its order. Other keys replace those of all its jobs, as `size:
    1g` and `runtime: 60s` for a file that was written for a whole disk. `variables` gives values of `${NAME}` in it:
    `variables: {BS: [4k, 64k]}`. Files that it includes lie beside or below it.

    Each job has metrics of its own, with its name as a prefix (`reader_read_iops`). Jobs that start together also have
    a sum: `total_read_iops`, or `phase_2_read_iops` if jobs of other phases read too: what they transferred from the
    first start to the last end. A job after `stonewall` or `wait_for`, or with another `startdelay` or `ramp_time`,
    is another phase. Tables have the sum of jobs that are alike (random or not, request size, direct or buffered,
    synced or not), and the figures of each of others.

    The first figure of a job with `rate`, `rate_iops` or `thinktime` is its mean latency: its rate is what it asks for,
    also on a slower disk.

    fslab itself sets directory, logs and output; `fslab plan` lists the lines that it leaves out. `filename=/dev/sdb`
    becomes a file `dev_sdb` on the file system under test. Options that would run commands or reach outside the test
    directory are errors. `fslab plan` and `fslab run` let the installed fio check each job: what it refuses is an
    error, before anything is formatted.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Scalar]
    file_keys: ClassVar[frozenset[str]] = frozenset({"file"})
    nested_keys: ClassVar[frozenset[str]] = frozenset({"variables"})

    file: str | None = Field(
        None, description="a job file, relative to the study; other keys are then optional"
    )
    scale: float | None = Field(
        None, description="only with 'file': factor for the sizes and times of its jobs, such as 0.1"
    )
    rw: str = Field(description="read, write, randread, randwrite, rw or randrw")
    size: SomeSize = Field(
        description="size per job, such as 1g: that of its file, or of its nrfiles files together"
    )
    bs: Text = Field(default="4k", description="block size; two sizes are for reads and writes: 4k,64k")
    iodepth: int = Field(
        default=1,
        ge=1,
        le=MOST_AT_ONCE,
        description="queue depth: requests in flight per job (libaio, io_uring, posixaio)",
    )
    numjobs: int = Field(
        default=1, ge=1, le=MOST_AT_ONCE, description="processes that run the job, each with its own files"
    )
    ioengine: str | None = Field(
        default=None, description="I/O engine; default: libaio with direct, psync otherwise"
    )
    direct: bool = Field(default=False, description="bypass the page cache (O_DIRECT)")
    runtime: Text | None = Field(default=None, description="run for this time, such as 10s")
    time_based: bool | None = Field(
        default=None, description="repeat the work until runtime is over; default: true if runtime is given"
    )
    rwmixread: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="percentage of reads in rw and randrw; default: that of fio, 50",
    )
    overwrite: bool | None = Field(
        default=None,
        description="write the files before the run, and overwrite them in the run; default: true for random and mixed "
        "writes",
    )
    fallocate: Text = Field(default="none", description="preallocation of files: none, native, posix, keep")
    fsync: int = Field(default=0, ge=0, description="fsync(2) after this many writes; 0: never")
    fdatasync: int = Field(default=0, ge=0, description="fdatasync(2) after this many writes; 0: never")
    end_fsync: bool | None = Field(
        default=None,
        description="fsync(2) at the end, in the measured time; default: true for buffered writes",
    )

    @cached_property
    def one(self) -> OneJob:
        return OneJob(section="fslab", options=self.options)

    @property
    def jobs(self) -> tuple[OneJob, ...]:
        return (self.one,)

    @property
    def _mode(self) -> str:
        return self.rw.partition(":")[0]

    @property
    def _directions(self) -> tuple[str, ...]:
        mix = {} if self.rwmixread is None else {"rwmixread": str(self.rwmixread)}
        return directions(self._mode, {**mix, **self.others})

    @property
    def reads(self) -> bool:
        return "read" in self._directions

    @property
    def writes(self) -> bool:
        return "write" in self._directions

    @property
    def engine(self) -> str:
        """The I/O engine. libaio is really asynchronous only with direct I/O, see io_submit(2)."""
        return self.ioengine or ("libaio" if self.direct else "psync")

    @property
    def in_place(self) -> bool:
        """Whether writes overwrite written extents.

        By default random and mixed writes do. Into an empty file they would allocate: most users of ``randwrite`` do
        not want to measure that, and later writes to the same blocks no longer allocate.
        """
        placed = self._mode.startswith("rand") or self._mode in MIXED
        return self.writes and (self.overwrite if self.overwrite is not None else placed)

    @property
    def laid_out(self) -> bool:
        """Whether files must exist, fully written, before the run.

        A file that was only fallocated has unwritten extents: reads of it never reach the device.
        """
        return self.reads or self.in_place

    @property
    def timed(self) -> bool:
        """Whether the run repeats its work, on the same files, until ``runtime`` is over."""
        return self.time_based if self.time_based is not None else self.runtime is not None

    @property
    def final_fsync(self) -> bool:
        """Whether the run ends with an fsync of each file. fio includes it in its run time, but not in its figures of
        ``fsync``, which it does not call after the last write."""
        return self.writes and not self.direct if self.end_fsync is None else self.end_fsync

    @property
    def total_bytes(self) -> int:
        """Size of all its files. Those that its processes share (``filename``) count once."""
        return all_files([self.one]).bytes

    @property
    def others(self) -> dict[str, str]:
        """The options that fslab does not interpret, in fio's spelling."""
        return {key: spelled(value) for key, value in (self.model_extra or {}).items() if key not in LEFT_OUT}

    @property
    def options(self) -> dict[str, str | None]:
        """All its options, by fio's names, also those that follow from others."""
        own = {
            "rw": self.rw, "bs": self.bs, "size": self.size, "ioengine": self.engine, "iodepth": self.iodepth,
            "numjobs": self.numjobs, "direct": int(self.direct), "rwmixread": self.rwmixread,
            "runtime": self.runtime, "time_based": 1 if self.timed else None,
            "overwrite": 1 if self.in_place else None, "fallocate": self.fallocate, "fsync": self.fsync or None,
            "fdatasync": self.fdatasync or None, "end_fsync": 1 if self.final_fsync else None,
        }  # fmt: skip
        return {**{key: str(value) for key, value in own.items() if value is not None}, **self.others}

    @field_validator("rw", "ioengine")
    @classmethod
    def _supported(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and (why := unsupported(str(info.field_name), value)):
            raise ValueError(why)
        return value

    @field_validator("bs")
    @classmethod
    def _plain_sizes(cls, value: str) -> str:
        return ",".join(TypeAdapter(SomeSize).validate_python(part) for part in value.split(","))

    @field_validator("runtime")
    @classmethod
    def _plain_time(cls, value: str | None) -> str | None:
        if value is None:
            return None
        run_s = parse_duration(value)
        if _TIME.fullmatch(value):
            return value
        if not (run_ms := round(run_s * 1000)):
            raise ValueError(f"'{value}' is less than a millisecond")
        return f"{run_ms}ms"

    @model_validator(mode="wrap")
    @classmethod
    def _check_together(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Report all mistakes at once: invalid values, unknown and refused names, contradictions."""
        if not isinstance(data, dict):
            return handler(data)
        objections = {str(key): why for key, value in data.items() if (why := _objection(str(key), value))}
        checked, mistakes = None, []
        try:
            checked = handler(data)
        except ValidationError as error:
            mistakes = [_again(found) for found in error.errors()]
        else:
            objections = checked._contradictions() | objections
        known = {found["loc"] for found in mistakes}
        objections = {key: why for key, why in objections.items() if (key,) not in known}
        mistakes += [mistake((key,), data.get(key), why) for key, why in objections.items()]
        if mistakes or checked is None:
            raise ValidationError.from_exception_data(cls.__name__, mistakes)
        return checked

    def _contradictions(self) -> dict[str, str]:
        """Return contradictions between parameters: the key to change → the reason."""
        found = {}
        if self.iodepth > 1 and self.engine in SYNC_ENGINES:
            found["iodepth"] = (
                f"has no effect above 1 with the synchronous I/O engine {self.engine}: "
                "set direct: true or ioengine: io_uring, or use numjobs"
            )
        if self.timed and self.runtime is None:
            found["time_based"] = "needs 'runtime'"
        files = self.others.get("nrfiles", "1")
        if not count_mistake("nrfiles", files) and int(files) > parse_size(self.size):
            found["nrfiles"] = f"{files} files cannot share {self.size}: less than one byte each"
        found |= {key: why for key, _, why in conflicts(self.one)}
        if self.one.syncs and not self.writes:
            found["fsync" if self.fsync else "fdatasync"] = "needs an 'rw' that writes"
        return found


def _objection(key: str, value: Scalar) -> str | None:
    """Return why a key cannot be given, or not with this value."""
    if key == "scale" or key.startswith(VARIABLES):
        return "has no effect without 'file'"
    if (why := objection(key, value)) is not None:
        return why
    if value == "":
        return "has no value: write one, or leave it out"
    # The fields are written as whole numbers, or are no numbers.
    return None if key in {*FioParameters.model_fields, *LEFT_OUT} else cut_off(key, spelled(value))


def _again(found: ErrorDetails) -> InitErrorDetails:
    kind = PydanticCustomError(found["type"], "{why}", {"why": why_of(found)})
    return {"type": kind, "loc": found["loc"], "input": found["input"]}
