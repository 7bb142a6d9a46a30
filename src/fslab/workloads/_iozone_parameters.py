"""Parameters of IOzone: a file size and a record length. Runs nothing."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from fslab.units import Size, parse_size, shown_size
from fslab.workloads import Parameters, Text

KIB = 1024
SMALLEST_FILE_BYTES = 4 * KIB  # iozone 3.489 silently starts at one page
LARGEST_RECORD_BYTES = 16 * KIB * KIB  # iozone's own limit
# A test of 1 s or longer counts as long enough (validity rule too-short).
ENOUGH_S = 1
MOST_BYTES = (
    8 << 30
)  # of the files of all rounds, so that a study at full scale does not write ten times as much
TESTS = {0: ("write", "rewrite"), 1: ("read", "reread"), 2: ("random_read", "random_write")}


class IozoneParameters(Parameters):
    """Each description names the option of IOzone. By default, the measured time includes fsync and close."""

    program: Literal["iozone", "engine"] = Field(
        "iozone",
        description="what runs the tests: IOzone, or fslab's engine, whose random order differs from block to block",
    )
    tests: Text = Field("0,1,2", description="-i: 0 write, rewrite; 1 read, reread; 2 random read, write")
    size: Size = Field(description="-s: size of the file (one for each process)")
    record: Size = Field("4k", description="-r: record length")
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
    def size_bytes(self) -> int:
        """Size of the file of one process."""
        return parse_size(self.size)

    @property
    def record_bytes(self) -> int:
        return parse_size(self.record)

    @property
    def most_rounds(self) -> int:
        """The number of files of each process: ``rounds``, but together no more than ``MOST_BYTES``."""
        return min(self.rounds, max(1, MOST_BYTES // self.size_bytes))

    @field_validator("tests")
    @classmethod
    def _known_tests(cls, value: str) -> str:
        words = value.split(",")
        if set(words) - {"0", "1", "2"} or len(set(words)) != len(words):
            raise ValueError(f"'{value}' is not a list of 0, 1 and 2, such as 0,1")
        return value

    @field_validator("size", "record")
    @classmethod
    def _whole_kib(cls, value: str) -> str:
        if parse_size(value) % KIB or not parse_size(value):
            raise ValueError(f"'{value}' is not a whole number of KiB, such as 64k")
        return value

    @field_validator("record")
    @classmethod
    def _small_enough(cls, value: str) -> str:
        if parse_size(value) > LARGEST_RECORD_BYTES:
            raise ValueError(f"'{value}' is more than IOzone's longest record, 16m")
        return value

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.program == "engine" and self.cache_line is not None:
            raise ValueError("'cache-line' is not supported by 'program: engine': remove it")
        if self.rounds > 1 and self.program != "engine":
            raise ValueError("more than one of 'rounds' needs 'program: engine'")
        if self.size_bytes < SMALLEST_FILE_BYTES:
            raise ValueError("IOzone's smallest file is 4k")
        if self.size_bytes % self.record_bytes:
            raise ValueError(
                f"the file size {shown_size(self.size_bytes)} is not a multiple of the record length "
                f"{shown_size(self.record_bytes)}"
            )
        return self
