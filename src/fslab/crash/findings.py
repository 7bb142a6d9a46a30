"""What a crash state shows: typed findings, and what of them is a broken promise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """In the order of how much is lost."""

    UNMOUNTABLE = "not mountable"
    DAMAGED = "damaged"
    KERNEL_LOG = "kernel log"
    UNREADABLE = "unreadable"
    LOST_NAME = "name lost"
    LOST_DATA = "data lost"
    LOST_ATTRIBUTE = "attribute lost"
    EXPOSED = "foreign bytes"
    NEITHER = "neither old nor new"
    RESURRECTED = "name that must not exist"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """``broken``: a promise of POSIX or of the file system is broken; else it is a loss that they allow.

    ``step`` is the sync that promised it, or the operation; None where it is about the whole file system. ``source``:
    what promises it, or leaves it open.
    """

    kind: Kind
    broken: bool
    detail: str
    source: str
    state: str = ""
    sequence: int | None = None
    step: int | None = None
    name: str | None = None
    lost_rows: tuple[int, ...] = ()

    @property
    def sort(self) -> tuple[Kind, bool, int | None, int | None, str | None]:
        """What is the same finding in another state."""
        return (self.kind, self.broken, self.sequence, self.step, self.name)


POSIX = "POSIX, fsync(): all data and metadata needed to retrieve it is on the device when it returns"
SYNC = "sync(2): on Linux sync and syncfs provide the same guarantees as fsync called on every file"
WRITE = "POSIX, O_SYNC and msync: the data of the write, and what is needed to read it, is on the device"
