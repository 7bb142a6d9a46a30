"""Where the time that is left goes: to the claims that give the most verdicts for a second of trials. Pure.

The cheapest are taken first, until their efforts fill what is left. Cells that one claim pays for are free for the
next. A claim that would take more than all of it alone is given up, and its time goes to the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fslab.claims.effort import Cost, Effort
from fslab.stats.paired import PAIRS_LEAST

BLOCKS_LEAST = PAIRS_LEAST  # the fewest that a verdict takes

# A forecast from n blocks is easily wrong by this much more than the share n/(n + _VAGUE) says.
_VAGUE = 8
_HOPE = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An open claim. ``blocks``: how many it has been measured in, which says how far a forecast can be trusted."""

    claim: str
    effort: Effort
    blocks: int


@dataclass(kw_only=True, slots=True)
class Pursuit:
    """``cells`` get trials now; ``waiting`` come when others are decided; ``given_up``: beyond the budget."""

    cells: set[str] = field(default_factory=set)
    pursued: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    seconds: float = 0.0


def pursue(candidates: Sequence[Candidate], cost: Cost, left_s: float | None) -> Pursuit:
    """What to measure next with so many seconds left (None: no limit)."""
    found = Pursuit()
    paid: dict[str, int] = {}
    for one in sorted(candidates, key=lambda candidate: candidate.effort.seconds):
        if left_s is not None and one.effort.seconds > left_s * (1 + _VAGUE / max(1, one.blocks)):
            found.given_up.append(one.claim)
            continue
        more = {cell: max(0, blocks - paid.get(cell, 0)) for cell, blocks in one.effort.blocks.items()}
        seconds = sum(cost(cell) * blocks for cell, blocks in more.items())
        if left_s is not None and found.pursued and found.seconds + seconds > left_s:
            found.waiting.append(one.claim)
            continue
        found.pursued.append(one.claim)
        found.seconds += seconds
        found.cells |= one.effort.blocks.keys()
        paid |= {cell: paid.get(cell, 0) + blocks for cell, blocks in more.items()}
    if candidates and not found.pursued:  # what others do not need is spent where it is most likely to help
        best = min(candidates, key=lambda candidate: candidate.effort.seconds)
        if left_s is not None and best.effort.seconds <= _HOPE * left_s:
            found.given_up.remove(best.claim)
            found.pursued.append(best.claim)
            found.cells, found.seconds = set(best.effort.blocks), left_s
    return found
