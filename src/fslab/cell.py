"""A cell: one storage stack with one workload. It contains everything that a machine needs to run one trial.

Cells cross the only boundary between machines (``run_trial(cell) -> TrialRecord``). Therefore they are plain frozen
values with a JSON form. They only describe and have no side effects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator

from fslab.names import Shown, Word
from fslab.units import Size

Scalar = str | int | float | bool
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)

_NUMBERS = (int, float, int | None, float | None)
_LONG = 100


def as_written(value: object) -> str:
    """Return a value as it is written in YAML, and in files of the kernel."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def shown(value: object) -> str:
    """Return a parameter as text for one line of a table. A long text, such as that of a file, becomes its length and
    digest."""
    text = as_written(value)
    if len(text) <= _LONG and "\n" not in text:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    return f"{len(text.encode())} bytes, digest {digest}"


class Frozen(BaseModel):
    """The base class of values: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Cache(StrEnum):
    """The state of the page cache when the measured run starts.

    ``cold``: everything is flushed, the file system remounted, the cache dropped. ``warm``: everything is flushed, and
    every file read once.
    """

    COLD = "cold"
    WARM = "warm"


class Fresh(StrEnum):
    """How long a new file system is used: for one trial, for all trials of a cell, or for the campaign.

    ``block``: for one trial, too, but the trials of a block that begin with the same files, or with the same empty file
    system, get copies of one.
    """

    TRIAL = "trial"
    BLOCK = "block"
    CELL = "cell"
    CAMPAIGN = "campaign"

    @property
    def lasts(self) -> bool:
        """Whether later trials use the same file system again."""
        return self in {Fresh.CELL, Fresh.CAMPAIGN}


class Finite(Frozen):
    """The base class of values that a study sets: no NaN and no infinity, which the JSON of the store does not have."""

    model_config = ConfigDict(allow_inf_nan=False)


class EntryOptions(Finite):
    """The base class of the keys of a medium, a layout or a tool. ``true`` and ``false`` are not accepted as the
    numbers 1 and 0."""

    def value_of(self, key: str) -> object:
        """Return the value of a key, also the default of one that is not set."""
        return getattr(self, key.replace("-", "_").replace(".", "_"))

    @field_validator("*", mode="before")
    @classmethod
    def _words(cls, value: object, info: ValidationInfo) -> object:
        """Return the word for a number, or a boolean: YAML 1.1 readers turn a bare on, off, yes and no into one."""
        known = get_args(cls.model_fields[str(info.field_name)].annotation)
        if isinstance(value, int) and str(value) in known:
            return str(value)
        words = {"on", "yes"} if value is True else {"off", "no"} if value is False else set()
        return next((word for word in known if word in words), value)

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation in _NUMBERS:
            raise ValueError(f"{as_written(value)} is not a number")
        return value


class MediumSpec(Finite):
    """A named medium of a study: its type (a registered medium) and its options. Image files contain the name."""

    name: Word
    type: str
    options: dict[str, Scalar] = {}


class Geometry(StrEnum):
    """The stripe geometry that mkfs uses: what mkfs detects, that of the layout, or none."""

    DEFAULT = "default"
    ALIGNED = "aligned"
    NONE = "none"


class MachineSpec(Frozen):
    """Where trials run: a registered machine, and for a guest its kernel.

    ``kernel`` and ``modules``: paths on the host; None: the default of the machine, or the host. ``memory``: of the
    guest, such as ``1g``; on the host, the limit for the tool and its page cache; None: the default, or no limit.
    """

    type: str = "host"
    kernel: str | None = None
    modules: str | None = None
    memory: Size | None = None

    @property
    def limits_tool(self) -> bool:
        """Whether the memory is a limit for the tool on the host, and not the memory of a guest."""
        return self.type == "host" and self.memory is not None


class StackSpec(Finite):
    """Medium + layout + file system + mkfs options + mount options, on a machine.

    ``filesystem``: None only on a ``directory`` medium, which uses the existing file system. ``mkfs_options``: as on a
    command line. ``mount_options``: as for ``mount -o``. ``plugins``: the packages that provide parts of the stack,
    with their versions; empty if all parts are built in.

    ``attributes``: of the work directory, as for chattr. ``fill``: how full the file system is before the workload,
    such as ``80%``. ``after_mount``: a command of the study, run after each mount. ``tuning``: settings of the machine,
    in addition to the cell's. ``served``: the server of its virtual disks stripes them, because the machine's kernel
    cannot build the layout.
    """

    name: Shown
    medium: MediumSpec
    layout: str = "single"
    layout_options: dict[str, Scalar] = {}
    filesystem: str | None = None
    mkfs_options: str = ""
    mount_options: str = "defaults"
    geometry: Geometry = Geometry.DEFAULT
    machine: MachineSpec = MachineSpec()
    plugins: dict[str, str] = {}
    attributes: str = ""
    fill: str = ""
    after_mount: str = ""
    tuning: dict[str, str] = {}
    served: bool = False

    @property
    def striped_by(self) -> str:
        """The layout, and that the disk server stripes if it does."""
        return f"{self.layout} (by the disk server)" if self.served else self.layout

    @property
    def settings(self) -> dict[str, str]:
        """The keys beside options and layout that are set, with their values."""
        own = {"attributes": self.attributes, "fill": self.fill, "after_mount": self.after_mount}
        return {**{key: value for key, value in own.items() if value}, **self.tuning}

    @property
    def filled(self) -> float:
        """The share of the file system that is in use before the workload, apart from the file system's own blocks."""
        return int(self.fill.rstrip("%")) / 100 if self.fill else 0.0

    @property
    def content(self) -> StackSpec:
        """The stack without its name and that of its medium, which the study chooses."""
        medium = self.medium.model_copy(update={"name": ""})
        return self.model_copy(update={"name": "", "medium": medium, "mount_options": self.mounted_with})

    @property
    def mounted_with(self) -> str:
        """The mount options; ``defaults`` if there are none."""
        return self.mount_options or "defaults"


class WorkloadSpec(Finite):
    """A named workload: the tool (a registered workload) and its expanded parameters. ``plugins``: as for a stack."""

    name: Shown
    tool: str
    parameters: dict[str, Scalar] = {}
    plugins: dict[str, str] = {}


class Cell(Frozen):
    """A stack with a workload, and the state in which it is measured.

    ``known_limits``: kinds of warnings that the study accounts for. For this cell they are only notes, because they are
    shown once for the whole study. ``slice_s``: the trials of the stacks of a workload run at once, and their tools
    take turns, each for so long (``campaign.time_slices``); None: one trial after the other. It depends on the other
    stacks of the study and on the room of the machine, and is therefore not part of the cell's identity.
    """

    stack: StackSpec
    workload: WorkloadSpec
    cache: Cache = Cache.COLD
    fresh: Fresh = Fresh.TRIAL
    time_limit_s: float = Field(600.0, gt=0, allow_inf_nan=False)
    tuning: dict[str, str] = {}
    known_limits: tuple[str, ...] = ()
    slice_s: float | None = Field(None, gt=0, allow_inf_nan=False)

    @property
    def tuned(self) -> dict[str, str]:
        """All settings of the machine during its trials. Those of the stack override those of the study."""
        return {**self.tuning, **self.stack.tuning}

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits, a digest of the cell's content. A cell has the same id in every campaign."""
        return _digest(self.model_copy(update={"slice_s": None}))

    @cached_property
    def stack_id(self) -> str:
        """Twelve hexadecimal digits, a digest of the stack."""
        return _digest(self.stack)

    @cached_property
    def content_id(self) -> str:
        """A digest of what is measured, without names. It is equal in two studies that use different names.

        Omits the time limit, which ends trials but does not change their results, and ``known_limits``.
        """
        workload = self.workload.model_copy(update={"name": ""})
        content: dict[str, Any] = {"time_limit_s": 0, "known_limits": (), "slice_s": None}
        content |= {"stack": self.stack.content, "workload": workload}
        return _digest(self.model_copy(update=content))

    @property
    def slot(self) -> str:
        """The name of the image that the trials use: one per medium, per cell, or per stack. Stripes of a medium's own
        server follow each other in one, beside that of its single disks.

        Stacks whose tools take turns exist at the same time: one per stack.
        """
        if self.slice_s is not None:
            return f"{self.stack.medium.name}-{self.stack_id}"
        of = {Fresh.CELL: f"-{self.id}", Fresh.CAMPAIGN: f"-{self.stack_id}"}.get(self.fresh, "")
        return f"{self.stack.medium.name}{'@stripe' * self.stack.served}{of}"

    @property
    def turn(self) -> str:
        """What distinguishes the directories of trials whose tools take turns; empty for a trial alone."""
        return "" if self.slice_s is None else f"-{self.stack_id}"

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy without the cached ids, so that the copy computes its own."""
        copied = super().model_copy(update=update, deep=deep)
        for name in ("id", "stack_id", "content_id"):
            copied.__dict__.pop(name, None)
        return copied


class TrialKey(Frozen):
    """The campaign and the block of a trial. ``seed``: for the random generator of the tool."""

    campaign: Word
    block: int
    seed: int


def _digest(value: BaseModel) -> str:
    # Without defaults: a field that a later version adds does not change the ids of values that do not use it.
    content: JsonValue = value.model_dump_json(exclude_defaults=True)
    return hashlib.blake2b(str(content).encode(), digest_size=6).hexdigest()


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by key, in the given order."""
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def by_workload(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return the cells that differ only in their stack together, in the given order: these are compared."""
    alike = grouped(cells, lambda cell: cell.model_dump_json(exclude={"stack", "time_limit_s", "slice_s"}))
    return list(alike.values())
