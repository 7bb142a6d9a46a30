"""A trial record: what one trial measured and everything needed to judge it. The other half of the seam.

Immutable once made. Unknown is None, never 0. This module touches nothing.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, field_validator

from fslab.cell import Cell, Frozen, TrialKey
from fslab.names import Shown
from fslab.units import LONGEST_S, Direction, Unit

RECORD_VERSION = 1
# Seconds; a sum of them is a number too.
Duration = Annotated[float, Field(ge=0, le=LONGEST_S)]
# Facts that are shown as what they are; the others as text.
_KINDS = {"kernel": str, "filesystem": str, "cpus": int, "memory_bytes": int}


class Severity(StrEnum):
    """``note``: good to know. ``doubt``: compared, but marked. ``invalid``: not compared."""

    NOTE = "note"
    DOUBT = "doubt"
    INVALID = "invalid"


class ValidityWarning(Frozen):
    """One reason to doubt a trial, with its data and what to do about it.

    ``kind`` is the name of the rule that made it (``fslab.validity``); records of other versions may have others.
    """

    kind: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    severity: Severity
    message: Shown
    hint: Shown | None = None
    data: dict[str, Any] = {}


class Metric(Frozen):
    """A named figure that a workload can yield: its unit and which way it is better, declared once."""

    name: str
    unit: Unit
    better: Direction = Direction.HIGHER


class Value(Frozen):
    """A measured figure. ``value`` is None when the tool could not tell."""

    value: float | None
    unit: Unit


class Status(StrEnum):
    """How a trial ended; failures carry their class: ``failed:<class>``. ``traced`` ones are kept apart and never
    compared: tracing costs speed."""

    OK = "ok"
    INVALID = "invalid"
    TRACED = "traced"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


class Command(Frozen):
    """A command as it was run, and how that went. ``stage``: attach, mkfs, mount, prepare, run, …"""

    stage: str
    argv: tuple[str, ...]
    duration_s: Duration | None = None
    exit_code: int | None = None


def checked_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts of a machine or a device; ValueError where one that is calculated with is of another type."""
    for name, kind in _KINDS.items():
        if not isinstance(facts.get(name), kind | None):
            raise ValueError(f"'{name}' must be of type {kind.__name__}")  # noqa: TRY004 - pydantic's way
    return facts


class Provenance(Frozen):
    """Where a figure comes from: exact commands, versions, machine, geometry of the device, and the lines that
    probes read (mount options in effect, programs that ran beside it), by name. ``plugins``: all packages of which
    code took part, with their versions."""

    commands: tuple[Command, ...] = ()
    tools: dict[str, str | None] = {}
    machine: dict[str, Any] = {}
    device: dict[str, Any] = {}
    observed: dict[str, tuple[str, ...]] = {}
    plugins: dict[str, str] = {}

    @field_validator("machine", "device")
    @classmethod
    def _of_their_kinds(cls, facts: dict[str, Any]) -> dict[str, Any]:
        return checked_facts(facts)


class TrialRecord(Frozen):
    """One measured repetition of a cell. Times in UTC and seconds; ``raw`` holds the tools' own output."""

    version: int = RECORD_VERSION
    key: TrialKey
    cell: Cell
    status: Status
    failure: str | None = None
    error: Shown | None = None
    started: datetime
    duration_s: Duration
    metrics: dict[str, Value] = {}
    probes: dict[str, Value] = {}
    validity: tuple[ValidityWarning, ...] = ()
    provenance: Provenance = Provenance()
    raw: dict[str, str] = Field(default={}, repr=False)

    @property
    def status_text(self) -> str:
        """``ok``, ``invalid``, ``unsupported`` or ``failed:<class>``, as stored and exported."""
        return f"failed:{self.failure}" if self.status is Status.FAILED else self.status.value
