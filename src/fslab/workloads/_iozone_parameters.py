"""What a study may ask of IOzone: one point (file size, record length), or a sweep over both. Runs nothing."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from fslab.units import Size, parse_size
from fslab.workloads import Parameters

KIB = 1024
SMALLEST_FILE_BYTES = 4 * KIB  # iozone 3.489 silently starts at one page
LARGEST_RECORD_BYTES = 16 * KIB * KIB  # iozone's own limit
MOST_POINTS = 200
TESTS = {0: ("write", "rewrite"), 1: ("read", "reread"), 2: ("random_read", "random_write")}

Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
Point = tuple[int, int]
"""File size and record length in bytes."""


class IozoneParameters(Parameters):
    """``size`` for one point, ``largest`` for a sweep; each description names IOzone's own option.

    What is timed ends with fsync (``flush``) and close (``close``) unless the study says otherwise.
    """

    program: Literal["iozone", "engine"] = Field(
        "iozone",
        description="what runs the tests: IOzone itself, or fslab's engine, whose random order changes by block",
    )
    tests: Text = Field("0,1,2", description="-i: 0 write, rewrite; 1 read, reread; 2 random read, write")
    size: Size | None = Field(
        None, description="-s: size of the file, or of each process's file, of one point"
    )
    record: Size | None = Field(None, description="-r: record length; of a sweep that has only this one")
    smallest: Size | None = Field(None, description="-n: first file size of a sweep, doubled up to 'largest'")
    largest: Size | None = Field(None, description="-g: last file size; makes it a sweep (-a)")
    smallest_record: Size | None = Field(
        None, alias="smallest-record", description="-y: first record length of a sweep, 4k"
    )
    largest_record: Size | None = Field(
        None, alias="largest-record", description="-q: last record length of a sweep, 16m"
    )
    flush: bool = Field(True, description="-e: fsync is part of the time")
    close: bool = Field(True, description="-c: close is part of the time")
    retest: bool = Field(True, description="also rewrite and reread (without: -+n)")
    direct: bool = Field(False, description="-I: bypass the page cache (O_DIRECT)")
    sync: bool = Field(False, description="-o: each write reaches the device (O_SYNC)")
    threads: int = Field(1, ge=1, le=256, description="-t: processes with a file each, when more than one")
    purge: bool = Field(False, description="-p: purge the processor's cache before each test")
    cache_size: int | None = Field(
        None, alias="cache-size", ge=1, le=1 << 20, description="-S: processor cache in kB, which -p purges"
    )
    cache_line: int | None = Field(
        None, alias="cache-line", ge=1, le=4096, description="-L: processor cache line in bytes"
    )

    @property
    def groups(self) -> tuple[int, ...]:
        """The numbers of ``tests``, ascending: IOzone runs them in this order however they are given."""
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
    def largest_bytes(self) -> int:
        """The largest file of one process."""
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
        """A key that the other form would ignore must not be believed to be in force."""
        if (self.size is None) == (self.largest is None):
            raise ValueError("give 'size' for one point or 'largest' for a sweep")
        given = {name for name in type(self).model_fields if getattr(self, name) is not None}
        ranges = given & {"smallest", "smallest_record", "largest_record"}
        if not self.sweep and ranges:
            raise ValueError(f"{_spelled(ranges)} belongs to a sweep: give 'largest' instead of 'size'")
        if self.record and ranges - {"smallest"}:
            raise ValueError("'record' is the only record length: leave out smallest-record, largest-record")
        return self

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.program == "engine" and self.cache_line is not None:
            raise ValueError("'cache-line' belongs to 'program: iozone': leave it out")
        if self.sweep and self.threads > 1:
            raise ValueError("IOzone sweeps with one process only: leave out 'threads'")
        if self.sweep and 0 not in self.groups:
            raise ValueError("a sweep reads the files that it wrote: 'tests' must have 0")
        if not self.points:
            raise ValueError("no file size from 'smallest' to 'largest' holds a record")
        if len(self.points) > MOST_POINTS:
            raise ValueError(f"{len(self.points)} points are more than {MOST_POINTS}: narrow the sweep")
        least = min(size for size, _ in self.points)
        if least < SMALLEST_FILE_BYTES:
            raise ValueError("IOzone's smallest file is 4k")
        for size, record in self.points:
            if size % record:
                raise ValueError(f"a file of {label(size)} is no whole number of records of {label(record)}")
        if self.record and least < parse_size(self.record):
            raise ValueError("'smallest' must hold one record")
        return self


def label(size_bytes: int) -> str:
    """``64m`` or ``96k``: a whole number of KiB as IOzone takes it, and as metric names have it."""
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
