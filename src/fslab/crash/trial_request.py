"""What a crash test, a measured recovery and a test of a fault do, and where.

A study sets the extent; a trial adds the rest and hands the request over in a file (``fslab crash run``). For people,
each field is an option of ``fslab crash``.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, TypeAdapter, field_validator, model_validator

from fslab import applications
from fslab.cell import EntryOptions
from fslab.errors import FslabError
from fslab.system import disk_server
from fslab.units import SomeSize, parse_size

_SEQUENCES, _RUNS = 100, 3
IMAGES_FULL = "the memory for images of crash states is full"
LESS = "choose a smaller medium, or a workload that writes less"


class Cuts(StrEnum):
    """Where the power is cut: anywhere, or only directly after each run, with all unflushed writes lost."""

    ANYWHERE = "anywhere"
    ENDS = "ends"


class Alphabet(StrEnum):
    """What sequences are made of: everything; operations that write no contents of files, and fsync of files and of the
    directory; or the sequences of published bugs."""

    ALL = "all"
    METADATA = "metadata"
    PUBLISHED = "published"


class CrashExtent(EntryOptions):
    """What to run before the power cut, and how many crash states to test."""

    length: int = Field(
        1,
        ge=1,
        le=3,
        description="operations of the longest sequences; as many sequences of each length are tried",
    )
    sequences: int | None = Field(
        None,
        ge=1,
        le=5000,
        description="sequences of operations, each in its own directory (default: 100), or runs of the application "
        "(default: 3)",
    )
    application: str | None = Field(
        None,
        description="run transactions of this application instead of sequences; 'fslab list applications' shows them "
        "with their settings",
    )
    settings: str = Field(
        "",
        description="settings of the application (docs/crash.md), such as journal_mode=wal,synchronous=normal",
    )
    threads: int = Field(
        1, ge=1, le=16, description="number of sequences, or of runs of the application, at the same time"
    )
    transactions: int = Field(20, ge=1, le=10_000, description="transactions in each run of the application")
    states: int = Field(
        150, ge=1, le=100_000, description="number of crash states to create, mount and check"
    )
    cuts: Cuts = Field(
        Cuts.ANYWHERE,
        description="where the power is cut: anywhere, or only after the sync that ends each sequence, with all "
        "unflushed writes lost",
    )
    operations: Alphabet = Field(
        Alphabet.ALL,
        description="what the sequences are made of: all; metadata: operations that write no contents of files, and "
        "fsync; published: the sequences of published bugs, of any length",
    )
    skip: int | None = Field(
        None,
        ge=0,
        description="skip the first N sequences and test the next ones in order, instead of a random choice",
    )
    recoveries: int = Field(
        5,
        ge=0,
        le=100_000,
        description="crash states in which power is cut again during recovery (the mount), three times each",
    )
    repairs: int = Field(
        2,
        ge=0,
        le=100_000,
        description="crash states in which power is cut during a full repair (e2fsck, xfs_repair), three times each",
    )
    sector: SomeSize = Field(
        "4k",
        description="size that the disk writes atomically, a multiple of 512: where an interrupted write is torn",
    )

    @field_validator("sector")
    @classmethod
    def _whole_sectors(cls, value: str) -> str:
        if not parse_size(value) or parse_size(value) % 512:
            raise ValueError(f"'{value}' is not a multiple of 512")
        return value

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.application is None:
            for name in filter(self._is_set, ("settings", "transactions")):
                raise ValueError(f"'{name}' needs 'application'")
            return self
        for name in filter(self._is_set, ("length", "operations", "skip")):
            raise ValueError(
                f"'{name}' has no effect with 'application': its runs are not sequences; leave it out"
            )
        try:
            applications.parse_settings(applications.durable(self.application), self.settings)
        except FslabError as error:
            raise ValueError(str(error)) from error
        return self

    def _is_set(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    @property
    def runs(self) -> int:
        """Number of sequences, or of runs of the application."""
        return self.sequences or (_SEQUENCES if self.application is None else _RUNS)


class CrashRequest(CrashExtent):
    """A crash test in ``directory``."""

    do: Literal["test"] = "test"
    directory: Path = Field(description="a new or empty directory on a virtual disk with log: data")
    sequence: tuple[str, ...] = Field(
        (), description="test only this sequence, such as 'write n; fsync n'; repeatable"
    )
    seed: int = Field(0, description="seed that chooses sequences and states")
    scratch: Path | None = Field(None, description="directory for temporary images (default: $TMPDIR)")
    recordings: Path | None = Field(
        None, description="directory for recordings of broken promises (default: that of fslab crash replay)"
    )

    @model_validator(mode="after")
    def _only_one_source(self) -> Self:
        if self.sequence and self.application is not None:
            raise ValueError("'sequence' cannot be combined with 'application'")
        return self


class RecoveryExtent(EntryOptions):
    """The files on the file system, and the writes in flight, when power is cut."""

    files: int = Field(
        10_000,
        ge=0,
        le=1_000_000,
        description="new files that are not synced when power is cut; one more file is synced",
    )
    size: SomeSize = Field("4k", description="size of each new file")
    unflushed: disk_server.Unflushed = Field(
        disk_server.Unflushed.RANDOM,
        description="writes in the disk's volatile cache at the power cut: all kept, all lost, or each at random",
    )
    check: bool = Field(True, description="also measure a full check of the file system")


class RecoveryRequest(RecoveryExtent):
    """A measured recovery of the file system of ``directory``."""

    do: Literal["recover"] = "recover"
    directory: Path = Field(description="a new or empty directory on a virtual disk")
    seed: int = Field(0, ge=0, description="seed that chooses the writes that are kept")


class FaultRequest(EntryOptions):
    """A test of one fault of the disk under ``directory``."""

    do: Literal["fault"] = "fault"
    directory: Path = Field(description="a new or empty directory on a virtual disk with a log")
    fault: str = Field(description="how the disk fails; 'fslab list faults' shows all")
    seed: int = Field(0, ge=0, description="seed that chooses places and bits")
    scratch: Path | None = Field(None, description="directory for temporary images (default: $TMPDIR)")


REQUESTS: TypeAdapter[CrashRequest | RecoveryRequest | FaultRequest] = TypeAdapter(
    CrashRequest | RecoveryRequest | FaultRequest
)
