"""Faults of a disk, and the reaction of a file system to each.

A fault strikes files on a mounted file system on a virtual disk. ``struck_files`` arms faults and reads the disk,
``trial`` judges. ``kinds`` does not define what a file system must do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fslab.registry import FunctionEntry, Registry, decorator_of

if TYPE_CHECKING:
    from fslab.faults.struck_files import Ground

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


Strike = Callable[["Ground"], Iterable[Attempt]]
Change = Callable[["Ground"], None]


def _nothing(ground: Ground) -> None:
    """Most faults need no preparation and no end."""


class Fault(FunctionEntry):
    """One fault, which ``fault`` makes of the function that arms it and performs operations that meet it.

    ``strike`` returns these attempts; the caller disarms the fault. ``prepare`` creates the additional files that the
    fault needs; the caller makes everything durable afterwards. ``end`` ends the fault, if that needs more than to
    disarm it.
    """

    def __init__(
        self, strike: Strike, summary: str, *, prepare: Change = _nothing, end: Change = _nothing
    ) -> None:
        super().__init__(strike)
        self.summary = summary
        self.prepare = prepare
        self.end = end
        self._strike = strike

    def strike(self, ground: Ground) -> Sequence[Attempt]:
        return tuple(self._strike(ground))


fault = decorator_of(Fault)
REGISTRY = Registry("fault", f"{__name__}.kinds", Fault, by_subject=True, group="fslab.faults")
