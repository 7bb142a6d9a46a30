"""A trial record: what one trial measured, and all data to judge it. It is what ``run_trial`` returns for a cell.

Records are immutable. An unknown value is None, never 0. This module has no side effects.
"""

import re
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator

from fslab.cell import Cell, Frozen, TrialKey
from fslab.names import Shown
from fslab.units import LONGEST_S, Direction, Unit

RECORD_VERSION = 2
# Seconds; bounded, so that a sum of durations is finite.
Duration = Annotated[float, Field(ge=0, le=LONGEST_S)]
_TAIL = re.compile(r"(^|_)(p9[5-9](_\d+)?|max)$")
# Facts that are used with their own type; all others are shown as text.
_KINDS = {
    "hostname": str, "kernel": str, "cpu": str, "filesystem": str, "cpus": int, "memory_bytes": int,
}  # fmt: skip


class Severity(StrEnum):
    """``note``: information. ``warning``: the trial is compared, with a warning. ``invalid``: it is not compared."""

    NOTE = "note"
    WARNING = "warning"
    INVALID = "invalid"


_DEEPEST = 32  # pydantic writes no JSON that is nested more than 255 times


def _written(value: dict[str, Any]) -> dict[str, Any]:
    """Return the value. Raises ValueError if it is nested too deeply to be written again: it can be another user's."""
    inner: list[Any] = [value]
    for _ in range(_DEEPEST):
        levels = (each.values() if isinstance(each, dict) else each for each in inner)
        inner = [each for level in levels for each in level if isinstance(each, dict | list)]
        if not inner:
            return value
    raise ValueError("nested too deeply")


JsonObject = Annotated[dict[str, Any], AfterValidator(_written)]
# Names that every store takes: PostgreSQL limits their length, and takes no NUL.
FigureName = Annotated[str, Field(pattern=r"^[^\x00]{1,128}$")]
OutputName = Annotated[str, Field(pattern=r"^[^\x00]{1,255}$")]


class ValidityWarning(Frozen):
    """A warning about a trial, with its data and what to do about it.

    ``kind``: name of the rule that issued it (``fslab.validity``). Records of other versions may have other kinds.
    """

    kind: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    severity: Severity
    message: Shown
    hint: Shown | None = None
    data: JsonObject = {}


class Metric(Frozen):
    """A named figure that a workload can measure, with its unit and preferred direction."""

    name: str
    unit: Unit
    better: Direction = Direction.HIGHER

    @property
    def is_tail(self) -> bool:
        """Whether it is the tail of latencies: a percentile from the 95th on, or the longest, as its name says."""
        return self.unit is Unit.NANOSECONDS and _TAIL.search(self.name) is not None


def _known(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


class Value(Frozen):
    """A measured figure. ``value``: None if the tool could not measure it, also for infinity and NaN."""

    value: Annotated[float | None, AfterValidator(_known)]
    unit: Unit


class Status(StrEnum):
    """How a trial ended. A failure is stored with its class: ``failed:<class>``. ``traced`` trials are stored
    separately and never compared, because tracing slows them down."""

    OK = "ok"
    INVALID = "invalid"
    TRACED = "traced"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


class Command(Frozen):
    """A command that was run, with its result. ``stage``: attach, mkfs, mount, prepare, run, …"""

    stage: str
    argv: tuple[str, ...]
    duration_s: Duration | None = None
    exit_code: int | None = None


def checked_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a machine or a device. Raises ValueError if a fact in ``_KINDS`` has another type."""
    for name, kind in _KINDS.items():
        if not isinstance(facts.get(name), kind | None):
            raise ValueError(f"'{name}' must be of type {kind.__name__}")  # noqa: TRY004 - pydantic's way
    return facts


class RunPart(Frozen):
    """What happened in one part of a run. ``seconds``: how long it took.

    ``wait``: share of the time in which the tool waited for its device, of the time that it ran or waited (the rest of
    the time, it waited for a CPU). ``cpu_s``: CPU time of the tool. ``read_bytes``, ``written_bytes``, ``flushes``: at
    the disks. Unknown: None.
    """

    seconds: Duration
    wait: Annotated[float, Field(ge=0, le=1)] | None = None
    cpu_s: Annotated[float, Field(ge=0)] | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    flushes: int | None = None


class Slices(Frozen):
    """How a run in slices went. ``count``: of its slices. ``asked_s``: the time that its tool was to run, None if it
    had a set amount of work. ``started_s``: until all trials of the round had begun. ``ran_s``: in all slices.
    ``left_share``: of the time of its slices, the part in which what it had left to the kernel was still written.
    ``flushed``: what it had left was written before each change.
    """

    count: int
    asked_s: float | None = None
    started_s: Duration
    ran_s: Duration
    left_share: float | None = None
    flushed: bool = False


WHOLE = "run"  # the name of the part that is all of a run


class Provenance(Frozen):
    """The origin of a figure: exact commands, versions, machine and geometry of the device. ``observed``: lines that
    probes read (mount options in effect, programs that ran at the same time), by name. ``parts``: what happened in the
    run, and in each of its parts that has figures of its own. ``plugins``: all plug-in packages whose code was used,
    with their versions. ``slices``: None for a trial that ran by itself. ``…_copied_from_cell``: the cell whose trial
    made them. ``memory_held_bytes``: memory that was freed just before the run."""

    commands: tuple[Command, ...] = ()
    tools: dict[str, str | None] = {}
    machine: JsonObject = {}
    device: JsonObject = {}
    observed: dict[str, tuple[str, ...]] = {}
    parts: dict[str, RunPart] = {}
    plugins: dict[str, str] = {}
    slices: Slices | None = None
    files_copied_from_cell: str | None = None
    filesystem_copied_from_cell: str | None = None
    memory_held_bytes: int = 0

    @field_validator("machine", "device")
    @classmethod
    def _of_their_kinds(cls, facts: dict[str, Any]) -> dict[str, Any]:
        return checked_facts(facts)


def _in_utc(time: datetime) -> datetime:
    """Return the same time in UTC. Raises ValueError if it has no time zone, or if UTC has no date for it."""
    if time.tzinfo is None:
        raise ValueError("has no time zone")
    try:
        return time.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("has no date in UTC") from error


class TrialRecord(Frozen):
    """One measured repetition of a cell. Times are in UTC, durations in seconds. ``raw``: the output of the tools."""

    version: Annotated[int, Field(ge=0, le=9999)] = RECORD_VERSION
    key: TrialKey
    cell: Cell
    status: Status
    failure: Annotated[str, Field(pattern=r"^[a-z_]{1,64}$")] | None = None
    error: Shown | None = None
    started: Annotated[datetime, AfterValidator(_in_utc)]
    duration_s: Duration
    metrics: dict[FigureName, Value] = {}
    probes: dict[FigureName, Value] = {}
    validity: tuple[ValidityWarning, ...] = ()
    provenance: Provenance = Provenance()
    raw: dict[OutputName, str] = Field(default={}, repr=False)

    @property
    def status_text(self) -> str:
        """``ok``, ``invalid``, ``unsupported`` or ``failed:<class>``, as stored and exported."""
        return f"failed:{self.failure}" if self.status is Status.FAILED else self.status.value
