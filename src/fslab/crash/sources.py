"""The contract of a source: what runs before the cut, and what must be left of it; and typed findings of what is not.
Sources are sequences of operations and applications.

A source makes runs. Each run has its own directory, which is durable before the run begins. Each run has steps; marks
in the disk's log show when a step began and when it returned.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from fslab.errors import SHORTAGE, ToolFailedError
from fslab.storage.crash_promises import Promises

Mark = Callable[[str], object]
S = TypeVar("S")


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


def directory_of(root: Path, number: int) -> Path:
    """Return the directory in which a run works."""
    return root / f"s{number:05d}"


def check_no_shortage(error: OSError) -> None:
    """Raise ToolFailedError if a state could not be read for lack of memory or descriptors: that is no finding."""
    if error.errno in SHORTAGE:
        raise ToolFailedError(
            f"cannot read what the power cut left: {error.strerror}",
            where=os.fsdecode(error.filename or ""),
            hint="see the memory, and the limit of open files (ulimit -n), that are left for it",
        ) from error


@dataclass(kw_only=True, slots=True)
class RunVerdict:
    """The verdict on one run in one state. ``lost``: steps whose loss is allowed. Steps count from 1."""

    findings: list[Finding] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One run at a cut: ``done`` steps had returned, and ``begun`` steps had begun (as many, or one more)."""

    number: int
    done: int
    begun: int


class Source(ABC, Generic[S]):
    """Makes runs and judges them. ``S`` is the type of what is read of a run in a mounted state."""

    @property
    @abstractmethod
    def steps(self) -> tuple[int, ...]:
        """The number of steps of each run."""

    @abstractmethod
    def lay_out(self, root: Path) -> None:
        """Create the directories of all runs, with the files that they start from. The caller flushes them."""

    @abstractmethod
    def perform(self, root: Path, number: int, mark: Mark) -> None:
        """Perform one run. Marks are ``RUN:STEP:begins`` and ``RUN:STEP:returned``; steps count from 1."""

    @abstractmethod
    def look(self, directory: Path) -> S:
        """Read the remains of a run in a mounted state that is discarded later. Read errors are part of the result."""

    def check_able(self, directory: Path) -> None:
        """Raise ToolFailedError if what reads the remains does not work here, whatever they are. ``directory``: an
        empty one, in which intact data can be made, or the same again."""

    usable = False

    def use(self, directory: Path) -> None:
        """If ``usable``: write into what is left of a run, and remove it. OSError if the file system refuses."""

    @abstractmethod
    def judge(self, progress: Progress, seen: S, promises: Promises) -> RunVerdict:
        """Find the differences between what is left of a run and what must be left. Pure."""

    @abstractmethod
    def promised(self, progress: Progress, promises: Promises) -> set[int]:
        """Return the steps of a run with a promise that no later step made again. Pure."""

    @abstractmethod
    def words(self, number: int) -> list[str]:
        """Return the steps of a run as text for people."""

    def extent(self) -> dict[str, Any]:
        """Return of what the runs are a sample, for the result."""
        return {}

    @abstractmethod
    def stored(self) -> dict[str, Any]:
        """Return the source as JSON, from which ``loaded`` restores it."""
