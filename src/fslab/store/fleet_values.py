"""The values in a fleet's store: machines, assignments, schedules. ``fleet`` reads and writes them."""

from __future__ import annotations

from enum import StrEnum

from pydantic import AwareDatetime, Field, FiniteFloat

from fslab.cell import Frozen
from fslab.names import Shown, Word

ONLINE_S = 90.0  # a machine seen within this time is online; machines report every 20 s
LONGEST_NAME = 63  # of a machine, and of a run: a campaign's name has both, and at most 128 characters


class AssignmentStatus(StrEnum):
    """The status of an assignment. All but ``queued`` and ``running`` are final. ``moved``: another assignment of the
    same run took its place."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    MOVED = "moved"

    @property
    def is_final(self) -> bool:
        """Whether the status can no longer change."""
        return self not in OPEN


OPEN = (AssignmentStatus.QUEUED, AssignmentStatus.RUNNING)


class AssignedStudy(Frozen):
    """A study as a value: its text, the texts of the files that it names, and what the command line changed.

    ``workloads``: run only these workloads; empty: all.
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
    """One study on one machine. ``campaign``: the id of its campaign. ``run``: common to the assignments that a
    ``schedule`` or a person started together."""

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
    """An assignment without its study's text. ``file``: of the study. ``trials``: of its campaign, in this store."""

    run: str
    schedule: str | None
    machine: str
    campaign: str
    file: Shown
    created: AwareDatetime
    status: AssignmentStatus
    message: Shown | None
    trials: int

    @property
    def was_moved(self) -> bool:
        """Whether another assignment of the run took its place."""
        return self.status is AssignmentStatus.MOVED


class FleetSchedule(Frozen):
    """A study that machines run repeatedly, every ``every_s`` seconds. ``machines``: as for ``--machines``; empty: all.
    ``message``: why the last start failed; None if it succeeded."""

    name: Word
    study: AssignedStudy
    machines: tuple[str, ...] = ()
    spread: bool = False
    every_s: int = Field(gt=0)
    next_run: AwareDatetime
    last_run: Word | None = None
    message: Shown | None = None


class MemberMachine(Frozen):
    """A machine as it announced itself. ``id``: a digest of its machine id and of this start. ``running``: the
    assignment that it runs. ``unseen_s``: seconds since it was last seen. ``facts``: finite, because infinity is no
    duration that could be shown."""

    name: Word = Field(max_length=LONGEST_NAME)
    id: str
    labels: dict[str, str] = {}
    facts: dict[str, str | int | FiniteFloat | bool | None] = {}
    version: Word
    running: str | None = None
    unseen_s: float = 0.0

    @property
    def is_online(self) -> bool:
        """Whether it was seen within the last 90 seconds."""
        return self.unseen_s < ONLINE_S
