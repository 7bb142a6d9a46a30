"""A fact of a machine: its name, how it is read, and whether results stay comparable when it differs.

Reading starts no process and writes nothing. Unknown is None. What a fact means for a comparison is declared
here, once; ``differences`` only applies it.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from fslab.system import sysfs

Value = str | int | float | bool | dict[str, str] | None


class FactGroup(StrEnum):
    """What a fact belongs to; a user allows the differences of a whole group by this name."""

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
    """What a difference means.

    ``decisive``: figures may differ because of it, so results are not compared unless it is allowed.
    ``shown``: said beside the comparison. ``passing``: of the moment, never compared.
    """

    DECISIVE = "decisive"
    SHOWN = "shown"
    PASSING = "passing"


def same(value: Value) -> Value:
    """A value that is compared as it is."""
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """``read`` takes the root of the file tree (``/``). ``canonical`` is what of the value is compared.

    ``tolerance``: by what share numbers may differ and count as the same.
    ``tuned_by`` names the setting of a study that replaces it. ``medium`` is the type of media that it
    matters for, None for all.
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
    """Whether all known values of a fact count as the same: also two that rounding would tell apart."""
    known = [value for value in values if value is not None]
    if fact.tolerance and known and all(isinstance(value, int | float) for value in known):
        return bool(max(known) <= min(known) * (1 + fact.tolerance))
    return len({repr(fact.canonical(value)) for value in known}) <= 1


def text_of(*names: str) -> Callable[[Path], Value]:
    """Reads the first of these files that says something."""

    def read(root: Path) -> Value:
        return next((found for name in names if (found := sysfs.text(root / name))), None)

    return read


def number_of(name: str) -> Callable[[Path], Value]:
    """Reads a file as a whole number."""
    return lambda root: sysfs.number(root / name)


def selected_of(name: str) -> Callable[[Path], Value]:
    """Reads the chosen word of a file such as ``always [madvise] never``."""
    return lambda root: sysfs.selected(root / name)


def flag_of(name: str, *, yes: tuple[str, ...] = ("1", "Y", "on")) -> Callable[[Path], Value]:
    """Reads a file as yes or no."""

    def read(root: Path) -> Value:
        found = sysfs.text(root / name)
        return None if found is None else found in yes

    return read


def field_of(path: Path, name: str) -> str | None:
    """The first line ``name: value`` of a file such as /proc/cpuinfo."""
    for line in (sysfs.text(path) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def memory_of(name: str) -> Callable[[Path], Value]:
    """Reads a line of /proc/meminfo, in bytes (proc_meminfo(5): its kB are 1024 bytes)."""

    def read(root: Path) -> Value:
        words = (field_of(root / "proc/meminfo", name) or "").split()
        return int(words[0]) * 1024 if words and words[0].isdigit() else None

    return read


def is_real(root: Path) -> bool:
    """Whether the tree is this machine's own, so that the kernel may be asked directly as well."""
    return os.path.samefile(root, "/")  # noqa: PTH121 - the two are compared as they are
