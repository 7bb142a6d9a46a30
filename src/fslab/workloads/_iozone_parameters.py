"""Parameters of IOzone: one point (file size, record length), or a sweep over both. Runs nothing."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from fslab.units import Size, parse_size
from fslab.workloads import Parameters

KIB = 1024
SMALLEST_FILE_BYTES = 4 * KIB  # iozone 3.489 silently starts at one page
LARGEST_RECORD_BYTES = 16 * KIB * KIB  # iozone's own limit
MOST_POINTS = 200
# A test of 1 s or longer counts as long enough (validity rule too-short).
ENOUGH_S = 1
MOST_BYTES = (
    8 << 30
)  # of the files of all rounds, so that a study at full scale does not write ten times as much
TESTS = {0: ("write", "rewrite"), 1: ("read", "reread"), 2: ("random_read", "random_write")}

Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
Point = tuple[int, int]
"""File size and record length in bytes."""


class IozoneParameters(Parameters):
    """Give ``size`` for one point, or ``largest`` for a sweep over file sizes and record lengths. Each description
    names the option of IOzone.

    By default, the measured time includes fsync (``flush``) and close (``close``).
    """

    program: Literal["iozone", "engine"] = Field(
        "iozone",
        description="what runs the tests: IOzone, or fslab's engine, whose random order differs from block to block",
    )
    tests: Text = Field("0,1,2", description="-i: 0 write, rewrite; 1 read, reread; 2 random read, write")
    size: Size | None = Field(None, description="-s: size of the file (one for each process) at one point")
    record: Size | None = Field(
        None, description="-r: record length, 4k by default; in a sweep: the only one"
    )
    smallest: Size | None = Field(
        None, description="-n: first file size of a sweep, doubled up to 'largest'; default: 64k"
    )
    largest: Size | None = Field(None, description="-g: last file size of a sweep (-a)")
    smallest_record: Size | None = Field(
        None, alias="smallest-record", description="-y: first record length of a sweep; default: 4k"
    )
    largest_record: Size | None = Field(
        None, alias="largest-record", description="-q: last record length of a sweep; default: 16m"
    )
    flush: bool = Field(True, description="-e: include fsync in the measured time")
    close: bool = Field(True, description="-c: include close in the measured time")
    retest: bool = Field(True, description="also run rewrite and reread; false: -+n")
    direct: bool = Field(False, description="-I: bypass the page cache (O_DIRECT)")
    sync: bool = Field(False, description="-o: each write reaches the device (O_SYNC)")
    threads: int = Field(1, ge=1, le=256, description="-t: number of processes, each with its own file")
    rounds: int = Field(
        1,
        ge=1,
        le=1000,
        description="repeat the tests up to N times, each time with another file, until each test has taken 1 s in "
        "total; all files together have at most 8 GiB; more than 1 only with 'program: engine'",
    )
    purge: bool = Field(False, description="-p: purge the CPU cache before each test")
    cache_size: int | None = Field(
        None,
        alias="cache-size",
        ge=1,
        le=1 << 20,
        description="-S: size of the CPU cache that 'purge' purges, in KiB; default: 1024",
    )
    cache_line: int | None = Field(
        None,
        alias="cache-line",
        ge=1,
        le=4096,
        description="-L: size of a CPU cache line, in bytes; not with 'program: engine'",
    )

    @property
    def groups(self) -> tuple[int, ...]:
        """The numbers of ``tests``, ascending. IOzone runs them in this order, whatever order is given."""
        return tuple(sorted(int(word) for word in self.tests.split(",")))

    @property
    def sweep(self) -> bool:
        return self.largest is not None

    @property
    def points(self) -> tuple[Point, ...]:
        """All points, in IOzone's order."""
        if self.largest is None:
            return ((parse_size(self.size or "0"), parse_size(self.record or "4k")),)
        if self.record:
            first = last = parse_size(self.record)
        else:
            first, last = parse_size(self.smallest_record or "4k"), parse_size(self.largest_record or "16m")
        sizes = _doubled(parse_size(self.smallest or "64k"), parse_size(self.largest))
        return tuple((size, record) for size in sizes for record in _doubled(first, min(last, size)))

    @property
    def most_rounds(self) -> int:
        """The number of files of each process: ``rounds``, but together no more than ``MOST_BYTES``."""
        return min(self.rounds, max(1, MOST_BYTES // self.largest_bytes))

    @property
    def largest_bytes(self) -> int:
        """Size of the largest file of one process."""
        return max(size for size, _ in self.points)

    @field_validator("tests")
    @classmethod
    def _known_tests(cls, value: str) -> str:
        words = value.split(",")
        if set(words) - {"0", "1", "2"} or len(set(words)) != len(words):
            raise ValueError(f"'{value}' is not a list of 0, 1 and 2, such as 0,1")
        return value

    @field_validator("size", "record", "smallest", "largest", "smallest_record", "largest_record")
    @classmethod
    def _whole_kib(cls, value: str | None) -> str | None:
        if value is not None and (parse_size(value) % KIB or not parse_size(value)):
            raise ValueError(f"'{value}' is not a whole number of KiB, such as 64k")
        return value

    @field_validator("record", "smallest_record", "largest_record")
    @classmethod
    def _small_enough(cls, value: str | None) -> str | None:
        if value is not None and parse_size(value) > LARGEST_RECORD_BYTES:
            raise ValueError(f"'{value}' is more than IOzone's longest record, 16m")
        return value

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        """Reject keys that the chosen form, a point or a sweep, would ignore."""
        if (self.size is None) == (self.largest is None):
            raise ValueError("give 'size' for one point or 'largest' for a sweep")
        given = {name for name in type(self).model_fields if getattr(self, name) is not None}
        ranges = given & {"smallest", "smallest_record", "largest_record"}
        if not self.sweep and ranges:
            raise ValueError(f"{_spelled(ranges)} needs a sweep: give 'largest' instead of 'size'")
        if self.record and ranges - {"smallest"}:
            raise ValueError(
                "'record' sets the only record length: remove it, or smallest-record and largest-record"
            )
        return self

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        smallest, smallest_record = self.smallest or "64k", self.smallest_record or "4k"
        if self.largest is not None and parse_size(self.largest) < parse_size(smallest):
            raise ValueError(f"'largest' must be at least 'smallest' ({smallest})")
        if parse_size(self.largest_record or "16m") < parse_size(smallest_record):
            raise ValueError(f"'largest-record' must be at least 'smallest-record' ({smallest_record})")
        return self

    @model_validator(mode="after")
    def _known_files(self) -> Self:
        if self.rounds > 1 and (self.program != "engine" or self.sweep):
            raise ValueError(
                "more than one of 'rounds' needs 'program: engine', and 'size' instead of a sweep"
            )
        if self.sweep and 0 not in self.groups:
            raise ValueError("a sweep reads the files that it wrote: 'tests' must include 0")
        return self

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.program == "engine" and self.cache_line is not None:
            raise ValueError("'cache-line' is not supported by 'program: engine': remove it")
        if self.sweep and self.threads > 1:
            raise ValueError("a sweep runs with one process only: remove 'threads'")
        if not self.points:
            raise ValueError("every file size is smaller than the record length: raise 'largest'")
        if len(self.points) > MOST_POINTS:
            raise ValueError(
                f"the sweep has {len(self.points)} points, at most {MOST_POINTS} are possible: narrow it"
            )
        least = min(size for size, _ in self.points)
        if least < SMALLEST_FILE_BYTES:
            raise ValueError("IOzone's smallest file is 4k")
        for size, record in self.points:
            if size % record:
                raise ValueError(
                    f"the file size {label(size)} is not a multiple of the record length {label(record)}"
                )
        if self.record and least < parse_size(self.record):
            raise ValueError("'smallest' must be at least 'record'")
        return self


def label(size_bytes: int) -> str:
    """Return ``64m`` or ``96k``: a whole number of KiB in IOzone's spelling, which metric names use too."""
    for factor, suffix in ((KIB**3, "g"), (KIB**2, "m")):
        if size_bytes % factor == 0:
            return f"{size_bytes // factor}{suffix}"
    return f"{size_bytes // KIB}k"


def _doubled(first: int, last: int) -> tuple[int, ...]:
    found = []
    while first <= last:
        found.append(first)
        first *= 2
    return tuple(found)


def _spelled(names: set[str]) -> str:
    return ", ".join(f"'{name.replace('_', '-')}'" for name in sorted(names))
