"""Estimates the effort of open claims, and divides the time left among them, for the most verdicts per second. Pure.

The claims with the least effort come first, until the time is used up. Cells that one claim pays for are free for the
next.
A claim that alone would take more than all of the time is given up, and its time goes to the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log, log1p

from fslab.answers.question import PAIRS_LEAST
from fslab.claims.model import FAILED, ClaimVerdict, PartFinding
from fslab.claims.parts import Part
from fslab.claims.words import verdict_of

BLOCKS_LEAST = PAIRS_LEAST  # minimum number of blocks for a verdict

# Forecasts from n blocks are uncertain: a claim is given up only above (1 + _VAGUE / n) times the time that is left.
# If all are given up, the cheapest is measured nevertheless, up to _HOPE times the time that is left.
_VAGUE = 8

_HOPE = 4

Cost = Callable[[str], float]  # maps the id of a cell to the seconds of one trial


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """Further trials. ``blocks``: how many more by cell id. ``seconds``: the time for all of them."""

    blocks: dict[str, int]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An open claim. ``blocks``: in how many blocks it was measured; a forecast from more blocks is more reliable."""

    claim: str
    effort: Effort
    blocks: int


@dataclass(kw_only=True, slots=True)
class Pursuit:
    """What to measure next: ``cells`` get trials now, for the claims in ``pursued``; ``seconds`` is the time for these.

    ``waiting``: claims that come when others are decided. ``given_up``: claims beyond the budget.
    """

    cells: set[str] = field(default_factory=set)
    pursued: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    seconds: float = 0.0


def pursue(candidates: Sequence[Candidate], cost: Cost, left_s: float | None) -> Pursuit:
    """Choose what to measure in the ``left_s`` seconds that are left (None: no limit)."""
    ordered = sorted(candidates, key=lambda candidate: candidate.effort.seconds)
    within = [one for one in ordered if left_s is None or one.effort.seconds <= _most_s(one, left_s)]
    found = in_order(within, cost, left_s)
    found.given_up = [one.claim for one in ordered if one not in within]
    if candidates and not found.pursued:  # spend the time where it is most likely to help
        best = ordered[0]
        if left_s is not None and best.effort.seconds <= _HOPE * left_s:
            found.given_up.remove(best.claim)
            found.pursued.append(best.claim)
            found.cells, found.seconds = set(best.effort.blocks), left_s
    return found


def _most_s(one: Candidate, left_s: float) -> float:
    """Return the effort in seconds from which on a claim is given up."""
    return left_s * (1 + _VAGUE / max(1, one.blocks))


def in_order(candidates: Sequence[Candidate], cost: Cost, left_s: float | None) -> Pursuit:
    """Pursue one claim after the other until the time is used up; at least the first."""
    found = Pursuit()
    paid: dict[str, int] = {}
    for one in candidates:
        more = {cell: max(0, blocks - paid.get(cell, 0)) for cell, blocks in one.effort.blocks.items()}
        seconds = sum(cost(cell) * blocks for cell, blocks in more.items())
        if left_s is not None and found.pursued and found.seconds + seconds > left_s:
            found.waiting.append(one.claim)
            continue
        found.pursued.append(one.claim)
        found.seconds += seconds
        found.cells |= one.effort.blocks.keys()
        paid |= {cell: paid.get(cell, 0) + blocks for cell, blocks in more.items()}
    return found


def effort_of(
    parts: Sequence[Part],
    findings: Sequence[PartFinding],
    cost: Cost,
    margin: float,
    *,
    exhausted: frozenset[str] = frozenset(),
) -> Effort | None:
    """Return the smallest effort that leads to a verdict; None if there is a verdict already, or if none is in sight.

    One failing part decides a claim, so this is the cheapest of the parts that seem to fail. If all parts seem to hold,
    each of them must be shown. ``exhausted``: ids of cells that get no more trials.
    """
    if any(verdict_of(finding) in FAILED for finding in findings):
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
    """Return whether a part fails if the ratio has its present value.

    A direction counts as a tie if the ratio is nearer to 1 than half the margin.
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
