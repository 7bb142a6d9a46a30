"""Estimates the effort of open claims: how many more trials lead to a verdict. Pure."""

from collections.abc import Sequence
from math import log, log1p

from fslab.analysis.budget_allocation import Cost, Effort
from fslab.answers.ratio import PAIRS_LEAST
from fslab.claims.model import DECISIVE, ClaimVerdict, PartFinding
from fslab.claims.parts import Part
from fslab.claims.verdict import verdict_of

BLOCKS_LEAST = PAIRS_LEAST  # minimum number of blocks for a verdict


def effort_of(
    parts: Sequence[Part],
    findings: Sequence[PartFinding],
    cost: Cost,
    margin: float,
    *,
    exhausted: frozenset[str] = frozenset(),
) -> Effort | None:
    """Return the smallest effort that leads to a verdict; None if there is a verdict already, or if none is in sight.

    One part that is not replicated decides a claim, so this is the cheapest of those that seem so. If all parts seem to
    hold, each of them must be shown. ``exhausted``: ids of cells that get no more trials.
    """
    if any(verdict_of(finding) in DECISIVE for finding in findings):
        return None
    left = [pair for pair in zip(parts, findings, strict=True) if pair[1].verdict is ClaimVerdict.OPEN]
    failing = [
        _effort([pair], cost)
        for pair in left
        if not pair[1].at_limit and pair[1].further and seems_to_fail(*pair, margin)
    ]
    failing = [effort for effort in failing if exhausted.isdisjoint(effort.blocks)] or failing
    if failing:
        return min(failing, key=lambda effort: effort.seconds)
    if not left or any(finding.at_limit or finding.further is None for _, finding in left):
        return None
    return _effort(left, cost)


def seems_to_fail(part: Part, finding: PartFinding, margin: float) -> bool:
    """Return whether a part is not replicated if the ratio has its present value.

    A direction counts as below the margin if the ratio is nearer to 1 than half of it.
    """
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
