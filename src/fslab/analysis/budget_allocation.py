"""Allocates the rest of the budget to open questions, for the most verdicts per second. Pure.

Those with the least effort come first, until the time is used up. Cells that one question pays for are free for the
next. A question whose forecast is certainly more than all of the time is given up, and its time goes to the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fslab.answers.ratio import most_forecast

# If all questions are given up, the cheapest is measured nevertheless, up to so many times the time that is left.
_HOPE = 4

Cost = Callable[[str], float]  # maps the id of a cell to the seconds of one trial


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """Further trials. ``blocks``: how many more by cell id. ``seconds``: the time for all of them."""

    blocks: dict[str, int]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An open claim, or an open row of a table. ``blocks``: in how many blocks it was measured; a forecast from more
    blocks is more reliable."""

    name: str
    effort: Effort
    blocks: int


@dataclass(kw_only=True, slots=True)
class BudgetAllocation:
    """What to measure next: ``cells`` get trials now, for those in ``chosen``; ``seconds`` is the time for these.

    ``waiting``: what comes when others are decided. ``given_up``: what is beyond the time that is left.
    """

    cells: set[str] = field(default_factory=set)
    chosen: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    seconds: float = 0.0


def allocate(candidates: Sequence[Candidate], cost: Cost, left_s: float | None) -> BudgetAllocation:
    """Choose what to measure in the ``left_s`` seconds that are left (None: no limit)."""
    ordered = sorted(candidates, key=lambda candidate: candidate.effort.seconds)
    within = [
        one for one in ordered if left_s is None or one.effort.seconds <= most_forecast(left_s, one.blocks)
    ]
    found = _in_order(within, cost, left_s)
    found.given_up = [one.name for one in ordered if one not in within]
    if candidates and not found.chosen:  # spend the time where it is most likely to help
        best = ordered[0]
        if left_s is not None and best.effort.seconds <= _HOPE * left_s:
            found.given_up.remove(best.name)
            found.chosen.append(best.name)
            found.cells, found.seconds = set(best.effort.blocks), left_s
    return found


def _in_order(candidates: Sequence[Candidate], cost: Cost, left_s: float | None) -> BudgetAllocation:
    """Choose one question after the other until the time is used up; at least the first."""
    found = BudgetAllocation()
    paid: dict[str, int] = {}
    for one in candidates:
        more = {cell: max(0, blocks - paid.get(cell, 0)) for cell, blocks in one.effort.blocks.items()}
        seconds = sum(cost(cell) * blocks for cell, blocks in more.items())
        if left_s is not None and found.chosen and found.seconds + seconds > left_s:
            found.waiting.append(one.name)
            continue
        found.chosen.append(one.name)
        found.seconds += seconds
        found.cells |= one.effort.blocks.keys()
        paid |= {cell: paid.get(cell, 0) + blocks for cell, blocks in more.items()}
    return found
