"""How many blocks a budget pays for, and what that means for a study's claims. Pure; uses expected durations."""

from collections.abc import Sequence

from fslab.cell import Cell
from fslab.claims.pursue import BLOCKS_LEAST
from fslab.plan.plan import trial_s
from fslab.units import counted, format_duration


def blocks_of(cells: Sequence[Cell], budget_s: float) -> float:
    """Return how many blocks of these cells the budget pays for; 0 without cells."""
    whole_s = block_s(cells)
    return budget_s / whole_s if whole_s else 0.0


def block_s(cells: Sequence[Cell]) -> float:
    """Return the expected duration of one block: one trial of each of these cells."""
    return sum(map(trial_s, cells))


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


def words(about: Sequence[Cell], budget_s: float | None) -> str | None:
    """Return, in one sentence, what the budget means for the claims about these cells; None without a budget."""
    if budget_s is None:
        return None
    trials, cells = counted(round(blocks_of(about, budget_s)), "trial"), counted(len(about), "cell")
    few = too_small(about, budget_s)
    return f"claims: {few or f'the budget is enough for about {trials} of each of {cells}'}"
