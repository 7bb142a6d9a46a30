"""Parameters of bonnie++, with names instead of its one-letter options. Runs nothing."""

from typing import Self

from pydantic import Field, field_validator, model_validator

from fslab.units import Size, parse_size
from fslab.workloads import Parameters

MIB = 1 << 20
FILES_UNIT = 1024
_MOST_FILES = 28_339 * FILES_UNIT  # bonnie++ stores 37 bytes per file, in at most 1 GiB


class BonnieParameters(Parameters):
    """``size`` for the tests of one large file, ``files`` for those of many small files, or both.

    The chunk of small files (fifth part of -n) is not offered: with it bonnie++ 2.00a uses a buffer that it has
    freed. Without ``ram`` (-r) bonnie++ would refuse a ``size`` below twice the machine's memory.
    """

    size: Size = Field("0", description="-s: size of the large file, in whole MiB; 0: no large file")
    bs: Size = Field(
        "8k", description="-s: bytes of each read and write of the large file: a power of two, 256 to 1m"
    )
    seeks: int = Field(
        8192, ge=0, description="-s: random reads of the large file; about a tenth are written back"
    )
    seekers: int = Field(5, ge=1, le=100, description="-s: processes that share the seeks")
    files: int = Field(
        0, ge=0, le=_MOST_FILES, description="-n: number of small files, a multiple of 1024; 0: none"
    )
    max_size: Size = Field("0", alias="max-size", description="-n: size of the largest small file")
    min_size: Size = Field(
        "0",
        alias="min-size",
        description="-n: size of the smallest small file; sizes are drawn between the two",
    )
    dirs: int = Field(1, ge=1, le=99_999, description="-n: directories that the files are spread over")
    ram: Size = Field(
        "0", description="-r: memory in whole MiB; 'size' must be at least twice as large; 0: no check"
    )
    fast: bool = Field(True, description="-f: skip the tests that read and write byte by byte")
    fsync: bool = Field(
        False, description="-b: fsync after each operation on small files and each seek that writes"
    )
    direct: bool = Field(
        False, description="-D: O_DIRECT; bonnie++ 2.00a uses it only for the block write test"
    )

    @property
    def size_bytes(self) -> int:
        return parse_size(self.size)

    @field_validator("size", "ram")
    @classmethod
    def _whole_mib(cls, value: str) -> str:
        if parse_size(value) % MIB:
            raise ValueError(f"'{value}' is not a whole number of MiB, such as 512m")
        return value

    @field_validator("bs")
    @classmethod
    def _power_of_two(cls, value: str) -> str:
        size = parse_size(value)
        if not 256 <= size <= MIB or size & (size - 1):
            raise ValueError(f"'{value}' is not a power of two from 256 to 1m")
        return value

    @field_validator("max_size", "min_size")
    @classmethod
    def _below_an_int(cls, value: str) -> str:
        if parse_size(value) >= 1 << 31:
            raise ValueError(f"'{value}' is too large: bonnie++'s small files must be smaller than 2g")
        return value

    @field_validator("files")
    @classmethod
    def _whole_units(cls, value: int) -> int:
        if value % FILES_UNIT:
            nearest = max(1, round(value / FILES_UNIT)) * FILES_UNIT
            raise ValueError(
                f"{value} is not a multiple of {FILES_UNIT}, the unit of bonnie++'s -n; write {nearest}"
            )
        return value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.size_bytes and not self.files:
            raise ValueError("nothing to do: give 'size', 'files' or both")
        useless: tuple[str, ...] = () if self.size_bytes else ("bs", "seeks", "seekers", "fast", "direct")
        useless += () if self.files else ("max_size", "min_size", "dirs")
        for name in useless:
            if name in self.model_fields_set:
                key = name.replace("_", "-")
                raise ValueError(f"'{key}' has no effect without {'files' if self.size_bytes else 'size'}")
        if parse_size(self.min_size) > parse_size(self.max_size):
            raise ValueError("'min-size' is larger than 'max-size'")
        if self.files and self.dirs > self.files:
            raise ValueError(f"more directories ({self.dirs}) than files ({self.files}): lower 'dirs'")
        if self.size_bytes and self.size_bytes < 2 * parse_size(self.ram):
            raise ValueError(f"'size' ({self.size}) must be at least twice 'ram' ({self.ram})")
        if self.direct and not self.fast:
            raise ValueError("'direct' is not possible with the byte-by-byte tests: set 'fast: true'")
        return self
