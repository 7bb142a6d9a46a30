"""The settings of the stopping rule: how often a campaign repeats its cells. The study sets it, the campaign stores it.

``analysis.further_trials`` applies the rule to the trials.
"""

from enum import StrEnum

from pydantic import Field

from fslab.cell import Frozen

MOST_TRIALS = 100_000  # per cell: more would not fit into a schedule
# Smallest differences of interest as shares, unless the study, a claim or the user sets another one. That of tails is
# larger: a 99th percentile comes from a hundredth of the operations, and varies by more between equal systems.
MARGIN = 0.1
TAIL_MARGIN = 0.25


class Until(StrEnum):
    """The goal that ends the repetition: clear comparisons, a precision, or decided claims."""

    DECIDED = "decided"
    PRECISE = "precise"
    CLAIMS = "claims"


class StoppingRule(Frozen):
    """``trials`` for each cell at first; with a ``precision`` (a share: 0.05) more trials, up to ``max_trials``.

    Without ``precision`` each cell has exactly ``trials`` trials. ``margin``: the smallest difference of interest, as a
    share; ``tail_margin``: that of latencies' tails (``Metric.is_tail``). ``planned_most``: the number of trials by
    which the error of all interim analyses is to be spent, if that is not the maximum: as many as the budget pays for,
    as known before the first analysis, or the original maximum if it was raised after trials had been analysed.
    """

    trials: int = Field(ge=1, le=MOST_TRIALS)
    precision: float | None = Field(None, gt=0, allow_inf_nan=False)
    margin: float = Field(MARGIN, gt=0, allow_inf_nan=False)
    tail_margin: float = Field(TAIL_MARGIN, gt=0, allow_inf_nan=False)
    until: Until = Until.DECIDED
    max_trials: int = Field(40, ge=1, le=MOST_TRIALS)
    planned_most: int | None = Field(None, ge=1, le=MOST_TRIALS)

    def smallest(self, *, tail: bool) -> float:
        """Return the smallest difference of interest, as a share: stacks that differ by less are alike."""
        if self.until is Until.PRECISE and self.precision is not None:
            return self.precision  # asked for each ratio
        return smallest(self.precision or self.margin, self.tail_margin, tail=tail)

    @property
    def most(self) -> int:
        """The largest number of trials that a cell can get."""
        return self.trials if self.precision is None else max(self.trials, self.max_trials)


def smallest(margin: float = MARGIN, tail_margin: float = TAIL_MARGIN, *, tail: bool) -> float:
    """Return the smallest difference of interest in a metric, as a share. That of a tail is never the smaller one."""
    return max(margin, tail_margin) if tail else margin
