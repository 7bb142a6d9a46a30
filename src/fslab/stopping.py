"""How often a campaign repeats its cells: a value that the study writes, the campaign keeps and the report reads.

Decides nothing; what it means for trials that are there is the matter of ``analysis``.
"""

from __future__ import annotations

from enum import StrEnum

from fslab.cell import Frozen


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

    trials: int
    precision: float | None = None
    until: Until = Until.DECIDED
    max_trials: int = 40
    planned_most: int | None = None

    @property
    def most(self) -> int:
        """The largest number of trials that a cell can get."""
        return self.trials if self.precision is None else max(self.trials, self.max_trials)
