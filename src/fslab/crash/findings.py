"""Typed findings of a crash state, which of them are broken promises, and the texts that make these promises."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fslab.crash.durable_history import SETUP, History
from fslab.crash.steps import Sync


class Kind(StrEnum):
    """Kinds of findings, the greatest loss first."""

    UNMOUNTABLE = "not mountable"
    DAMAGED = "damaged"
    KERNEL_LOG = "kernel log"
    UNREADABLE = "unreadable"
    LOST_NAME = "name lost"
    LOST_DATA = "data lost"
    LOST_ATTRIBUTE = "attribute lost"
    UNWRITABLE = "not writable"
    EXPOSED = "foreign bytes"
    NEITHER = "neither old nor new"
    RESURRECTED = "name that must not exist"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """``broken``: the finding breaks a promise of POSIX or of the file system; else it is a loss that they allow.

    ``step``: the sync or the operation that made the promise; None for a finding about the whole file system.
    ``also``: further steps whose promise it breaks.
    ``source``: the text that makes the promise or leaves it open.
    """

    kind: Kind
    broken: bool
    detail: str
    source: str
    state: str = ""
    sequence: int | None = None
    step: int | None = None
    also: frozenset[int] = frozenset()
    name: str | None = None
    lost_rows: tuple[int, ...] = ()

    @property
    def broken_steps(self) -> frozenset[int]:
        """The steps of its sequence whose promise it breaks; 0: what was durable before, or the file system itself."""
        return self.also | {self.step or 0} if self.broken else frozenset()

    @property
    def sort(self) -> tuple[Kind, bool, int | None, int | None, str | None]:
        """The key that is equal for the same finding in another state."""
        return (self.kind, self.broken, self.sequence, self.step, self.name)


POSIX = "POSIX, fsync(): all data and metadata needed to retrieve it is on the device when it returns"

SYNC = "sync(2): on Linux sync and syncfs provide the same guarantees as fsync called on every file"

WRITE = "POSIX, O_SYNC and msync: the data of the write, and what is needed to read it, is on the device"


def source(history: History, step: int, kind: Kind) -> str:
    """Return the source of the promise that a finding of this ``kind`` breaks. ``step`` made the promise.

    POSIX promises data after fsync. Names and extended attributes are promised by the file system only.
    """
    if step == SETUP:
        return SYNC
    made, promises = history.steps[step - 1], history.promises
    if made.sync is Sync.SYNC:
        return SYNC
    if made.operation is not None and made.operation.durable is not None:
        return WRITE
    if kind is Kind.LOST_ATTRIBUTE:
        return promises.attributes.source if promises.attributes.given else POSIX
    if kind not in {Kind.LOST_NAME, Kind.RESURRECTED}:
        return POSIX
    if made.sync is Sync.DIRECTORY:
        return promises.directories.source
    return (promises.names if made.operation is None else promises.removal).source
