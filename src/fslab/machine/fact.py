"""A fact of a machine: its name, how it is read, and whether results stay comparable if it differs.

Reading starts no process and writes nothing. An unknown value is None. A fact declares what a difference means for a
comparison; ``differences`` only applies this.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from fslab.system import memory, sysfs

Value = str | int | float | bool | dict[str, str] | None


class FactGroup(StrEnum):
    """The group of a fact. A user allows all differences of a group by this name."""

    KERNEL = "kernel"
    CPU = "cpu"
    MEMORY = "memory"
    HOST = "host"
    SETTINGS = "settings"
    IMAGES = "images"
    DEVICE = "device"
    TOOLS = "tools"
    STUDY = "study"


class Weight(StrEnum):
    """What a difference means for a comparison.

    ``decisive``: it can change figures, so results are not compared unless a user allows it. ``shown``: it is reported
    with the comparison. ``passing``: a momentary value, never compared.
    """

    DECISIVE = "decisive"
    SHOWN = "shown"
    PASSING = "passing"


def same(value: Value) -> Value:
    """Return the value unchanged: the default of ``canonical``."""
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """The declaration of one fact.

    ``read`` takes the root of the file tree (``/``). ``canonical`` returns the part of the value that is compared.
    ``tolerance``: the relative difference up to which numbers count as the same. ``tuned_by``: the setting of a study
    that replaces the value. ``medium``: the type of media for which the fact matters, None for all.
    """

    name: str
    group: FactGroup
    read: Callable[[Path], Value]
    weight: Weight = Weight.DECISIVE
    canonical: Callable[[Any], Value] = same
    tolerance: float = 0.0
    tuned_by: str | None = None
    medium: str | None = None


def alike(fact: Fact, values: Iterable[Any]) -> bool:
    """Return whether all known values count as the same. Within the tolerance, they may round to different values."""
    known = [value for value in values if value is not None]
    if fact.tolerance and known and all(isinstance(value, int | float) for value in known):
        return bool(max(known) <= min(known) * (1 + fact.tolerance))
    return len({repr(fact.canonical(value)) for value in known}) <= 1


def text_of(*names: str) -> Callable[[Path], Value]:
    """Return a reader of the first of these files that is not empty."""

    def read(root: Path) -> Value:
        return next((found for name in names if (found := sysfs.text(root / name))), None)

    return read


def number_of(name: str) -> Callable[[Path], Value]:
    """Return a reader of a file with a whole number."""
    return lambda root: sysfs.number(root / name)


def selected_of(name: str) -> Callable[[Path], Value]:
    """Return a reader of the selected word of a file such as ``always [madvise] never``."""
    return lambda root: sysfs.selected(root / name)


def flag_of(name: str) -> Callable[[Path], Value]:
    """Return a reader of a file with yes or no."""

    def read(root: Path) -> Value:
        found = sysfs.text(root / name)
        return None if found is None else found in {"1", "Y", "on"}

    return read


def memory_of(name: str) -> Callable[[Path], Value]:
    """Return a reader of a line of /proc/meminfo, in bytes."""
    return lambda root: memory.meminfo(name, root)


def is_real(root: Path) -> bool:
    """Return whether ``root`` is this machine's own file tree, so that system calls give facts of the same machine."""
    return os.path.samefile(root, "/")  # noqa: PTH121 - the two are compared as they are
