"""Faults of a disk, and what a file system makes of each: one file per fault.

A fault strikes files on a mounted file system whose disk is a virtual one. ``ground`` arms and looks, ``trial`` judges;
no file of ``kinds`` says what a file system ought to do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fslab.registry import Registry

if TYPE_CHECKING:
    from fslab.faults.ground import Ground

FILES = 8  # that a fault is tried on


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One operation that met the fault, on one file.

    ``error``: what it said, None: success. ``right``: whether the contents that it returned were, where it returns any.
    ``now``: the generation that is there after success; ``before``: the one that was durable before, None: no such
    file. ``later``: after an error a second sync said success. ``undone``: it was looked at at once, and nothing of it
    is left.
    """

    path: str
    error: str | None = None
    right: bool = True
    now: int = 1
    before: int | None = None
    later: bool = False
    undone: bool = False


class Fault(ABC):
    name: str
    summary: ClassVar[str]

    def prepare(self, ground: Ground) -> None:  # noqa: B027 - most need none
        """Make the files that it needs beside those that are there, before everything is durable."""

    @abstractmethod
    def strike(self, ground: Ground) -> Sequence[Attempt]:
        """Arm it, and do what meets it. What is armed is disarmed by the caller."""

    def end(self, ground: Ground) -> None:  # noqa: B027 - most need none
        """End it, where that is more than to disarm."""


REGISTRY: Registry[Fault] = Registry("fault", f"{__name__}.kinds", Fault, group="fslab.faults")
