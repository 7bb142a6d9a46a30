"""The stopping rule: how often a campaign repeats its cells. The study sets it, the campaign stores it.

This module only contains the values; ``analysis`` applies the rule to the trials.
"""

from enum import StrEnum

from pydantic import Field

from fslab.cell import Frozen

MOST_TRIALS = 100_000  # per cell: more would not fit into a schedule
MARGIN = (
    0.1  # smallest difference of interest as a share, unless the study, a claim or the user sets another one
)


class Until(StrEnum):
    """The goal that ends the repetition: clear comparisons, a precision, or decided claims."""

    DECIDED = "decided"
    PRECISE = "precise"
    CLAIMS = "claims"


class StoppingRule(Frozen):
    """``trials`` for each cell at first; with a ``precision`` (a share: 0.05) more trials, up to ``max_trials``.

    Without ``precision`` each cell has exactly ``trials`` trials. ``margin``: the smallest difference of interest, as a
    share. ``planned_most``: the original maximum of a campaign whose maximum was raised later. The error of each
    interim analysis is computed with the original maximum, because trials had been analysed before the change.
    """

    trials: int = Field(ge=1, le=MOST_TRIALS)
    precision: float | None = Field(None, gt=0, allow_inf_nan=False)
    margin: float = Field(MARGIN, gt=0, allow_inf_nan=False)
    until: Until = Until.DECIDED
    max_trials: int = Field(40, ge=1, le=MOST_TRIALS)
    planned_most: int | None = Field(None, ge=1, le=MOST_TRIALS)

    @property
    def smallest(self) -> float:
        """The smallest difference of interest, as a share: stacks that differ by less are alike."""
        return self.precision or self.margin

    @property
    def most(self) -> int:
        """The largest number of trials that a cell can get."""
        return self.trials if self.precision is None else max(self.trials, self.max_trials)
