"""How many more trials an open claim takes, of which cells, and how long: by the figures as they are now. Pure.

For a schedule and for "time left", never for a verdict: more trials may change the ratio and the spread that it
rests on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, log1p

from fslab.claims.model import FAILED, ClaimVerdict, PartFinding
from fslab.claims.parts import Part
from fslab.claims.words import verdict_of

Cost = Callable[[str], float]  # seconds of one trial, by the id of its cell


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """``blocks`` more by the id of each cell that is asked for; ``seconds`` for all of them."""

    blocks: dict[str, int]
    seconds: float


def effort_of(
    parts: Sequence[Part], findings: Sequence[PartFinding], cost: Cost, margin: float
) -> Effort | None:
    """The cheapest way to a verdict; None where there is one, or where none is in sight.

    One part that fails is enough: the cheapest of those that seem to. Where all seem to hold, all must be shown to.
    """
    if any(verdict_of(finding) in FAILED for finding in findings):
        return None
    left = [pair for pair in zip(parts, findings, strict=True) if pair[1].verdict is ClaimVerdict.OPEN]
    failing = [
        _effort([pair], cost)
        for pair in left
        if not pair[1].at_limit and pair[1].further and seems_to_fail(*pair, margin)
    ]
    if failing:
        return min(failing, key=lambda effort: effort.seconds)
    if not left or any(finding.at_limit or finding.further is None for _, finding in left):
        return None
    return _effort(left, cost)


def seems_to_fail(part: Part, finding: PartFinding, margin: float) -> bool:
    """Whether a part fails if the ratio is what it seems: nearer to 1 than half the margin, a direction is a tie."""
    if finding.value is None:
        return False
    if part.bounds.is_direction and abs(log(finding.value)) < log1p(margin) / 2:
        return True
    return not part.bounds.hold(finding.value, finding.value)


def _effort(chosen: Sequence[tuple[Part, PartFinding]], cost: Cost) -> Effort:
    blocks: dict[str, int] = {}
    for part, finding in chosen:
        for figure in part.figures:
            blocks[figure.cell.id] = max(blocks.get(figure.cell.id, 0), finding.further or 0)
    return Effort(blocks=blocks, seconds=sum(cost(cell) * more for cell, more in blocks.items()))
