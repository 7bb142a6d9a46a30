"""A cell: one storage stack with one workload on it, everything a machine needs to run one trial.

Cells cross the only machine boundary there is (``run_trial(cell) -> TrialRecord``), so they are plain
frozen values with a JSON form. They describe; they touch nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from fslab.names import Shown, Word

Scalar = str | int | float | bool


_LONG = 100


def shown(value: object) -> str:
    """A parameter as a line of a table holds it: of a file's text, its length and digest."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if len(text) <= _LONG and "\n" not in text:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    return f"{len(text.encode())} bytes, digest {digest}"


class Frozen(BaseModel):
    """A value: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Cache(StrEnum):
    """State of the page cache when the measured run starts.

    ``cold``: everything flushed, remounted, dropped. ``warm``: everything flushed, every file read once.
    """

    COLD = "cold"
    WARM = "warm"


class Fresh(StrEnum):
    """How long one made file system lives: for a trial, for all trials of a cell, or for the campaign."""

    TRIAL = "trial"
    CELL = "cell"
    CAMPAIGN = "campaign"


class MediumSpec(Frozen):
    """A named medium of a study: its type (a registered medium) and that type's options. Images carry its name."""

    name: Word
    type: str
    options: dict[str, Scalar] = {}


class Geometry(StrEnum):
    """What mkfs is told of stripes: what it finds by itself, what the layout says, or nothing at all."""

    DEFAULT = "default"
    ALIGNED = "aligned"
    NONE = "none"


class MachineSpec(Frozen):
    """Where trials run: a registered machine, and for a guest its kernel.

    ``kernel`` and ``modules`` are paths on the host, None for the machine's own default; ``memory`` is that of
    the guest, such as ``1g``. The host has none of these.
    """

    type: str = "host"
    kernel: str | None = None
    modules: str | None = None
    memory: str | None = None


class StackSpec(Frozen):
    """Medium + layout + file system + mkfs options + mount options, on a machine.

    ``filesystem`` is None only on a ``directory`` medium, where the one that is there is used.
    ``mkfs_options`` is written as on a command line, ``mount_options`` as for ``mount -o``. ``plugins`` are the
    packages that parts of it come from, with their versions; empty where all is built in.
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

    @property
    def content(self) -> StackSpec:
        """The stack without the names that a study gives to it and to its medium."""
        medium = self.medium.model_copy(update={"name": ""})
        return self.model_copy(update={"name": "", "medium": medium, "mount_options": self.mounted_with})

    @property
    def mounted_with(self) -> str:
        """The mount options; none at all are ``defaults``."""
        return self.mount_options or "defaults"


class WorkloadSpec(Frozen):
    """A named workload: the tool (a registered workload) and its parameters, fully expanded; ``plugins`` as above."""

    name: Shown
    tool: str
    parameters: dict[str, Scalar] = {}
    plugins: dict[str, str] = {}


class Cell(Frozen):
    """stack × workload, with the state it is measured in.

    ``known_limits`` are kinds of warnings that the study itself accounts for: notes here, said once for the study.
    """

    stack: StackSpec
    workload: WorkloadSpec
    cache: Cache = Cache.COLD
    fresh: Fresh = Fresh.TRIAL
    time_limit_s: float = Field(600.0, gt=0, allow_inf_nan=False)
    tuning: dict[str, str] = {}
    known_limits: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        """Twelve hex digits of the cell's content: the same cell has the same id in every campaign."""
        return _digest(self)

    @cached_property
    def stack_id(self) -> str:
        """The same for the stack alone."""
        return _digest(self.stack)

    @cached_property
    def content_id(self) -> str:
        """The same for what is measured, whatever it is called: equal in two studies that use other names.

        The time limit is left out, which ends trials and changes none, and so is what is known of their limits.
        """
        workload = self.workload.model_copy(update={"name": ""})
        content = {"stack": self.stack.content, "workload": workload, "time_limit_s": 0, "known_limits": ()}
        return _digest(self.model_copy(update=content))

    @property
    def slot(self) -> str:
        """Which image its trials use: one for all of a medium, one per cell, or one per stack."""
        of = {Fresh.TRIAL: "", Fresh.CELL: f"-{self.id}", Fresh.CAMPAIGN: f"-{self.stack_id}"}
        return f"{self.stack.medium.name}{of[self.fresh]}"

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with an id of its own: what was computed of this cell does not go along."""
        copied = super().model_copy(update=update, deep=deep)
        for name in ("id", "stack_id", "content_id"):
            copied.__dict__.pop(name, None)
        return copied


class TrialKey(Frozen):
    """Which repetition of which campaign a trial is; ``seed`` feeds the tool's random generator."""

    campaign: Word
    block: int
    seed: int


def _digest(value: BaseModel) -> str:
    # Without defaults: a field that a later version adds changes no id of what does not use it.
    content: JsonValue = value.model_dump_json(exclude_defaults=True)
    return hashlib.blake2b(str(content).encode(), digest_size=6).hexdigest()
