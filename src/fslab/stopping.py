"""How often a campaign repeats its cells: a value that the study writes, the campaign keeps and the report reads.

Decides nothing; what it means for trials that are there is the matter of ``analysis``.
"""

from enum import StrEnum

from pydantic import Field

from fslab.cell import Frozen

MOST_TRIALS = 100_000  # of a cell: more would not fit into a schedule


class Until(StrEnum):
    """What trials are repeated for."""

    DECIDED = "decided"
    PRECISE = "precise"
    CLAIMS = "claims"


class StoppingRule(Frozen):
    """``trials`` of each cell to begin with; with a ``precision`` (a share: 0.05) more, up to ``max_trials``.

    Without ``precision`` there are exactly ``trials``. ``planned_most``: of a campaign that was given more, the most
    that it was planned with. What error each look may make goes by that, since trials were seen before the change.
    """

    trials: int = Field(ge=1, le=MOST_TRIALS)
    precision: float | None = Field(None, gt=0, allow_inf_nan=False)
    until: Until = Until.DECIDED
    max_trials: int = Field(40, ge=1, le=MOST_TRIALS)
    planned_most: int | None = Field(None, ge=1, le=MOST_TRIALS)

    @property
    def most(self) -> int:
        """The largest number of trials that a cell can get."""
        return self.trials if self.precision is None else max(self.trials, self.max_trials)
