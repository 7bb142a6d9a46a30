"""What a fleet's store keeps, as values: machines, assignments, schedules. How they are kept is ``fleet``'s matter."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, Field

from fslab.cell import Frozen
from fslab.names import Shown, Word

ONLINE_S = 90.0  # who was seen within this time is there; machines say so every 20 s


class AssignmentStatus(StrEnum):
    """How far an assignment is. All but the first two are final."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens to it."""
        return self not in OPEN


OPEN = (AssignmentStatus.QUEUED, AssignmentStatus.RUNNING)


class AssignedStudy(Frozen):
    """A study as a value: its text with the texts of the files that it names, and what the command line changed.

    ``workloads``: only these of it; empty: all.
    """

    file: Shown
    text: str
    files: dict[str, str] = {}
    changes: tuple[str, ...] = ()
    budget_s: float | None = Field(None, gt=0, allow_inf_nan=False)
    workloads: tuple[str, ...] = ()
    name: Word | None = None
    note: Shown | None = None
    version: Shown


class Assignment(Frozen):
    """One study on one machine: a campaign of the id ``campaign``. ``run`` is common to those started together, by a
    ``schedule`` or by a person."""

    id: Word
    run: Word
    schedule: Word | None = None
    machine: Word
    campaign: Word
    study: AssignedStudy
    created: AwareDatetime
    status: AssignmentStatus = AssignmentStatus.QUEUED
    message: Shown | None = None
    epoch: int = 0
    ended: AwareDatetime | None = None


class AssignmentSummary(Frozen):
    """An assignment without its study's text. ``file``: the study's; ``trials``: how many of its campaign are here."""

    run: str
    schedule: str | None
    machine: str
    campaign: str
    file: Shown
    created: AwareDatetime
    status: AssignmentStatus
    message: Shown | None
    trials: int


class FleetSchedule(Frozen):
    """A study that machines run again and again, every ``every_s`` seconds. ``machines``: as for ``--machines``; empty:
    all. ``message``: why it could not be started the last time."""

    name: Word
    study: AssignedStudy
    machines: tuple[str, ...] = ()
    spread: bool = False
    every_s: int = Field(gt=0)
    next_run: AwareDatetime
    last_run: Word | None = None
    message: Shown | None = None


class MemberMachine(Frozen):
    """A machine as it announced itself. ``id``: digest of its machine id and of this start; ``running``: the assignment
    that it runs; ``unseen_s``: seconds since it was last seen."""

    name: Word
    id: str
    labels: dict[str, str] = {}
    facts: dict[str, Any] = {}
    version: Shown
    running: str | None = None
    unseen_s: float = 0.0

    @property
    def is_online(self) -> bool:
        """Whether it was seen within the last 90 seconds."""
        return self.unseen_s < ONLINE_S
