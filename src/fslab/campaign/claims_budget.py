"""How many blocks a budget pays for, and what that means for a study's claims. Pure; uses expected durations."""

from collections.abc import Sequence
from math import fsum, inf

from fslab.cell import Cell
from fslab.claims.pending import joined
from fslab.claims.pursue import BLOCKS_LEAST
from fslab.plan.plan import trial_s
from fslab.stopping import StoppingRule, Until
from fslab.units import format_duration

# Cells whose claims are decided get no more trials. The other cells therefore get more blocks than the budget pays
# for with all cells. Simulated with 10 % noise: 1, 1.5, 2.5 and 4 times as many blocks decide 54, 56, 62 and 59 %.
_PLANNED = 2.5
_LEAST = 6


def blocks_of(cells: Sequence[Cell], budget_s: float) -> float:
    """Return how many blocks of these cells the budget pays for; 0 without cells."""
    whole_s = block_s(cells)
    return budget_s / whole_s if whole_s else 0.0


def block_s(cells: Sequence[Cell]) -> float:
    """Return the expected duration of one block: one trial of each of these cells."""
    return sum(map(trial_s, cells))


def to_begin_with(
    claims: Sequence[frozenset[str]], cells: Sequence[Cell], trials: int, budget_s: float | None
) -> frozenset[str]:
    """Return the ids of the cells that a campaign measures first; the others begin after the first interim analysis.

    ``claims``: the ids of the cells of each claim. Claims without a common cell need not be measured side by side. If
    half of the budget does not pay for ``trials`` blocks of all cells, the groups of claims come first of which most
    are decided per second; at least one group.
    """
    costs_s = {cell.id: trial_s(cell) for cell in cells}
    about = [own & frozenset(costs_s) for own in claims]
    # fsum: the sum must not depend on the order of a set, so that a resumed campaign begins with the same cells.
    block_s = {group: fsum(costs_s[cell] for cell in group) for group in joined(about)}
    value = {group: sum(bool(own & group) for own in about) / block_s[group] for group in block_s}
    chosen: frozenset[str] = frozenset()
    left_s = inf if budget_s is None else budget_s / 2
    for group in sorted(block_s, key=value.__getitem__, reverse=True):
        left_s -= trials * block_s[group]
        if chosen and left_s < 0:
            break
        chosen |= group
    return chosen


def spread_over_budget(stopping: StoppingRule, about: Sequence[Cell], budget_s: float | None) -> StoppingRule:
    """Return the rule with its error spread over the blocks that the budget probably reaches, not over the maximum.

    Error that is reserved for interim analyses that never take place widens the intervals of the others needlessly.
    """
    if stopping.until is not Until.CLAIMS or budget_s is None:
        return stopping
    likely = max(_LEAST, stopping.trials, round(_PLANNED * blocks_of(about, budget_s)))
    return stopping.model_copy(update={"planned_most": min(likely, stopping.most)})


def too_small(about: Sequence[Cell], budget_s: float | None) -> str | None:
    """Return a message if the budget ends before three blocks, the minimum for deciding any claim; else None."""
    if budget_s is None or not about or blocks_of(about, budget_s) >= BLOCKS_LEAST:
        return None
    needed_s = BLOCKS_LEAST * block_s(about)
    return (
        f"the budget of {format_duration(budget_s)} is too small to decide any claim: it is enough for "
        f"{blocks_of(about, budget_s):.1f} trials of each of the {len(about)} cells with claims, and at least "
        f"{BLOCKS_LEAST} are needed: --budget {round(needed_s / 60) + 1}m"
    )
