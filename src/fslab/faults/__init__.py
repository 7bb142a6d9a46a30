"""Faults of a disk, and the reaction of a file system to each. One file per fault.

A fault strikes files on a mounted file system on a virtual disk. ``ground`` arms faults and reads the disk, ``trial``
judges. No file of ``kinds`` defines what a file system must do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fslab.registry import Registry

if TYPE_CHECKING:
    from fslab.faults.ground import Ground

FILES = 8  # number of files that a fault is tried on


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One operation on one file that met the fault.

    ``error``: the error that it returned; None after success. ``right``: whether the contents that it returned were
    correct; True if it returns none. ``now``: the generation of the file after success. ``before``: the generation that
    was durable before; None without such a file. ``later``: a second sync after the error returned success.
    ``undone``: the result was checked at once, and the disk was restored.
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
        """Create the additional files that the fault needs. The caller makes everything durable afterwards."""

    @abstractmethod
    def strike(self, ground: Ground) -> Sequence[Attempt]:
        """Arm the fault and perform operations that meet it. The caller disarms it."""

    def end(self, ground: Ground) -> None:  # noqa: B027 - most need none
        """End the fault, if that needs more than to disarm it."""


REGISTRY: Registry[Fault] = Registry("fault", f"{__name__}.kinds", Fault, group="fslab.faults")
