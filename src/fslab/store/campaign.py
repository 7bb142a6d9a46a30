"""A campaign as it is stored: one execution of a study on one machine, with everything that resuming it needs.

A plain value; it does not access the store.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import AwareDatetime, Field, field_serializer, field_validator

from fslab.cell import Cell, Frozen
from fslab.claims.schema import Claim
from fslab.names import Shown, Word
from fslab.stopping_settings import MOST_TRIALS, StoppingRule
from fslab.trial_record import JsonObject, checked_facts
from fslab.units import counted

EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)  # no fslab is older: an earlier date is that of a wrong clock


class CampaignStatus(StrEnum):
    """The stored status of a campaign. ``running`` without a process means that it crashed."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"
    BUDGET_SPENT = "budget_spent"
    FAILED = "failed"


class CampaignEntry(NamedTuple):
    """What identifies a stored campaign: its texts as they are stored, also if the rest of it cannot be read."""

    id: str
    name: str | None
    study_title: str
    status: str


class RunBudget(Frozen):
    """When a run of a campaign that repeats trials for claims began, and its budget. A campaign that was resumed has
    several runs."""

    began: AwareDatetime
    budget_s: float | None = Field(ge=0, allow_inf_nan=False)


class Ablation(Frozen):
    """The cells of an ablation: the slower cell, its variants with mechanisms off, and the faster cell.

    ``of``: the campaign that it explains. ``off`` maps the name of each measured set of mechanisms, such as
    ``copy-on-write+data-checksums``, to a cell id. ``switches``: each mechanism's switch, in words. ``common``:
    mechanisms that the faster stack has too.
    """

    of: str
    workload: str
    slow: str
    fast: str
    slow_cell: str
    fast_cell: str
    metric: str
    higher_is_better: bool
    off: dict[str, str]
    switches: dict[str, str]
    common: tuple[str, ...] = ()


class CampaignSettings(Frozen):
    """What a campaign does besides what its cells say; stored as JSON.

    ``set``: changes of the study on the command line. ``extended_from``: the maximum number of trials of each cell
    before each extension, oldest first. ``claims``: those of the study when the campaign started. ``runs``: oldest
    first; only kept if the schedule depends on their budgets. ``files``: the texts of the study's files, by path;
    ``directory``: where these were. ``user_id``: the user whose journal shows whether it runs. ``fleet_run``: the run
    of a fleet that it is a part of.
    """

    set: tuple[str, ...] = ()
    scale: float = Field(1.0, gt=0, allow_inf_nan=False)
    budget_s: float | None = Field(None, ge=0, allow_inf_nan=False)
    stopping: StoppingRule | None = None
    extended_from: tuple[Annotated[int, Field(ge=1, le=MOST_TRIALS)], ...] = ()
    claims: tuple[Claim, ...] = ()
    runs: tuple[RunBudget, ...] = ()
    files: dict[str, str] = {}
    directory: str | None = None
    ablation: Ablation | None = None
    user_id: int | None = Field(None, ge=0, lt=1 << 32)
    fleet_run: str | None = None

    @field_serializer("claims")
    def _as_in_a_study(self, claims: tuple[Claim, ...]) -> list[dict[str, Any]]:
        """Return the claims without what is not set: a study may omit a list, but it must not be empty."""
        return [claim.model_dump(exclude_defaults=True) for claim in claims]


class Campaign(Frozen):
    """One execution of a study on one machine.

    ``study_source``: the text of the study file. ``seed``: determines the order of trials. ``trials``: the planned
    minimum per cell. ``machine``: the machine's facts. ``name`` and ``note``: the user's own, can be changed. Devices
    named for wiping are not stored: the user must name them again to resume.
    """

    id: Word
    study_id: Shown
    study_title: Shown
    study_source: str
    settings: CampaignSettings = CampaignSettings()
    seed: int
    cells: tuple[Cell, ...]
    trials: int = Field(ge=1, le=MOST_TRIALS)
    machine: JsonObject = Field(default_factory=dict)
    created: AwareDatetime
    status: CampaignStatus = CampaignStatus.RUNNING
    name: str | None = None
    note: str | None = None

    @field_validator("machine")
    @classmethod
    def _of_their_kinds(cls, facts: dict[str, Any]) -> dict[str, Any]:
        return checked_facts(facts)

    @property
    def stopping(self) -> StoppingRule:
        return self.settings.stopping or StoppingRule(trials=self.trials)

    def with_settings(self, **changes: object) -> Campaign:
        """Return the campaign with these settings changed. They are not validated."""
        return self.model_copy(update={"settings": self.settings.model_copy(update=changes)})

    def extended(self, *, trials: int | None = None, max_trials: int | None = None) -> Campaign:
        """Return the campaign with more trials of each cell. ValueError if the new number is not larger.

        ``trials`` is for campaigns with a fixed number of trials. In a campaign that repeats to a precision, ``trials``
        is when the first interim analysis took place, so only the maximum (``max_trials``) can be raised.
        """
        known = self.stopping
        if (trials if known.precision is not None else max_trials) is not None:
            option, why = (
                ("--trials", "repeats to a precision: use --max-trials")
                if trials is not None
                else ("--max-trials", "has a fixed number of trials: use --trials")
            )
            raise ValueError(f"{option} does not apply: the campaign {why}")
        wanted = trials if known.precision is None else max_trials
        if wanted is None or wanted <= known.most:
            raise ValueError(f"the campaign already plans {counted(known.most, 'trial')} of each cell")
        if wanted > MOST_TRIALS:
            raise ValueError(f"a cell can have at most {MOST_TRIALS} trials")
        later = {"max_trials": wanted, "planned_most": known.planned_most or known.most}
        stopping = known.model_copy(update={"trials": wanted} if known.precision is None else later)
        extended = self.model_copy(update={"trials": stopping.trials})
        return extended.with_settings(
            stopping=stopping, extended_from=(*self.settings.extended_from, known.most)
        )

    def planned(self, impossible: int = 0) -> tuple[int, int]:
        """Return the minimum and maximum number of trials; ``impossible`` cells are stored once and not repeated."""
        possible = len(self.cells) - impossible
        return impossible + possible * self.trials, impossible + possible * self.stopping.most

    def with_run(self, began: AwareDatetime, budget_s: float | None) -> Campaign:
        """Return the campaign with one more run."""
        return self.with_settings(runs=(*self.settings.runs, RunBudget(began=began, budget_s=budget_s)))
