"""What runs before the cut, and what must be left of it: the contract of sequences of operations and of applications.

A source makes runs. Each has a directory of its own, durable before it begins, and steps of which the disk's log tells
when they began and when they returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from fslab.crash.findings import Finding
from fslab.storage.promises import Promises

Mark = Callable[[str], object]
S = TypeVar("S")


def directory_of(root: Path, number: int) -> Path:
    """Where a run works."""
    return root / f"s{number:05d}"


@dataclass(kw_only=True, slots=True)
class Verdict:
    """Of one run in one state. Steps from 1: those that ``promised`` anything, and those lost as they may be."""

    findings: list[Finding] = field(default_factory=list)
    promised: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One run at a cut: ``done`` steps had returned, and ``begun`` had begun (one more, or as many)."""

    number: int
    done: int
    begun: int


class Source(ABC, Generic[S]):
    """``S`` is what is seen of a run in a mounted state."""

    @property
    @abstractmethod
    def steps(self) -> tuple[int, ...]:
        """How many steps each run has."""

    @abstractmethod
    def lay_out(self, root: Path) -> None:
        """Make the directories of all runs, with what they start from; flushing is not asked for."""

    @abstractmethod
    def perform(self, root: Path, number: int, mark: Mark) -> None:
        """Do one run. A mark is ``RUN:STEP:begins`` or ``RUN:STEP:returned``, steps from 1."""

    @abstractmethod
    def look(self, directory: Path) -> S:
        """What is there, in a mounted state that is thrown away; what cannot be read is part of the answer."""

    @abstractmethod
    def judge(self, progress: Progress, seen: S, promises: Promises) -> Verdict:
        """What of it is not as it must be. Pure."""

    @abstractmethod
    def words(self, number: int) -> list[str]:
        """The steps of a run, for people."""

    @abstractmethod
    def stored(self) -> dict[str, Any]:
        """What ``loaded`` makes it of again, as JSON."""
