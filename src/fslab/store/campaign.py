"""A campaign as it is stored: one execution of a study on one machine, with all that resuming it needs.

A plain value; it touches nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, Field

from fslab.cell import Cell, Frozen
from fslab.claims.written import Claim
from fslab.stopping import Stopping


class CampaignStatus(StrEnum):
    """How far a campaign is. ``running`` without a process means that it crashed."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"
    BUDGET_SPENT = "budget_spent"
    FAILED = "failed"


class Campaign(Frozen):
    """One execution of a study on one machine.

    ``study_source`` is the study file's text, ``settings`` what the command line changed, ``seed`` what the
    order of trials was drawn from, ``trials`` how many are planned per cell at least, ``machine`` the facts of
    the machine. Devices that the user named for wiping are not kept: a resumed campaign must be told again.
    """

    id: str
    study_id: str
    study_title: str
    study_source: str
    settings: dict[str, Any] = Field(default_factory=dict)
    seed: int
    cells: tuple[Cell, ...]
    trials: int
    machine: dict[str, Any] = Field(default_factory=dict)
    created: AwareDatetime
    status: CampaignStatus = CampaignStatus.RUNNING

    @property
    def stopping(self) -> Stopping:
        """How often its cells are repeated."""
        return Stopping.model_validate(self.settings.get("stopping") or {"trials": self.trials})

    def planned(self, impossible: int = 0) -> tuple[int, int]:
        """How many trials it has at least and at most; ``impossible`` cells are stored once, and not repeated."""
        possible = len(self.cells) - impossible
        return impossible + possible * self.trials, impossible + possible * self.stopping.most

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What its study claimed when it began."""
        return tuple(Claim.model_validate(claim) for claim in self.settings.get("claims", ()))
