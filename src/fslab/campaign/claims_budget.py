"""What a budget is worth to the claims of a study: how many blocks it pays for. Pure; from expected times."""

from collections.abc import Sequence

from fslab.cell import Cell
from fslab.claims.pursue import BLOCKS_LEAST
from fslab.plan.plan import trial_s
from fslab.stopping import StoppingRule, Until
from fslab.units import format_duration

# Cells whose claims are decided get no more trials, so that those of the others come to more blocks than the budget
# pays for of all. Simulated with 10 % noise: 1, 1.5, 2.5 and 4 times as many decide 54, 56, 62 and 59 %.
_PLANNED = 2.5
_LEAST = 6


def blocks_of(cells: Sequence[Cell], budget_s: float) -> float:
    """How many blocks of these cells the budget pays for."""
    whole_s = block_s(cells)
    return budget_s / whole_s if whole_s else 0.0


def block_s(cells: Sequence[Cell]) -> float:
    """What a trial of each of these cells takes."""
    return sum(map(trial_s, cells))


def spread_over_budget(stopping: StoppingRule, about: Sequence[Cell], budget_s: float | None) -> StoppingRule:
    """The rule with its error spent over the blocks that the budget is likely to reach, instead of over the most.

    What would be kept for looks that never come makes the intervals of those that come wider than need be.
    """
    if stopping.until is not Until.CLAIMS or budget_s is None:
        return stopping
    likely = max(_LEAST, stopping.trials, round(_PLANNED * blocks_of(about, budget_s)))
    return stopping.model_copy(update={"planned_most": min(likely, stopping.most)})


def too_small(about: Sequence[Cell], budget_s: float | None) -> str | None:
    """That the budget ends before three blocks, the fewest that any claim can be decided by; None if it does not."""
    if budget_s is None or not about or blocks_of(about, budget_s) >= BLOCKS_LEAST:
        return None
    needed_s = BLOCKS_LEAST * block_s(about)
    return (
        f"the budget of {format_duration(budget_s)} is enough for {blocks_of(about, budget_s):.1f} trials of each of "
        f"the {len(about)} cells that claims are about; deciding any claim takes at least {BLOCKS_LEAST}: "
        f"--budget {round(needed_s / 60) + 1}m"
    )
