"""Determines the verdict on a part from interval, bounds and margin, and on a claim from its parts. Pure.

A *direction* (``> 1``) is replicated when the interval lies on its side of 1, and reversed when it lies on the other
side. When the whole interval lies within the margin on both sides of 1 (two one-sided tests: Schuirmann, J.
Pharmacokinet. Biopharm. 15 (1987) 657), there is no difference of interest: ``small`` on the claimed side, ``opposite``
on the other, a ``tie`` if it contains 1. Given enough trials, one of these is always reached.

A *size* (``>= 2``, ``~ 3 within 10%``, a claimed tie) is replicated when the interval lies within its range, and
differs when it lies outside. If the true value is at the end of the range, neither is ever reached; if it is close,
not in reasonable time: ``at_limit``.

Forecasts the effort that an open claim needs: how many more trials lead to a verdict.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from math import exp, inf, log, log1p
from typing import Any

from fslab.analysis.further_trials import Cost, Effort
from fslab.answers.ratio import PAIRS_LEAST, Estimate
from fslab.claims.model import BELOW, DECISIVE, FAILED, ClaimVerdict, PartFinding
from fslab.claims.parts import Bounds, Part
from fslab.stats import Interval

_LARGE = 0.1  # a stated effect from which on the margin is not reduced, unless the margin is larger


def of_interval(bounds: Bounds, low: float, high: float, margin: float) -> ClaimVerdict:
    small = bounds.is_direction and 1 / (1 + margin) <= low and high <= 1 + margin
    if bounds.hold(low, high):
        return ClaimVerdict.SMALL if small else ClaimVerdict.REPLICATED
    if not bounds.exclude(low, high):
        return ClaimVerdict.TIE if small else ClaimVerdict.OPEN
    if not bounds.is_direction:
        return ClaimVerdict.DIFFERS
    return ClaimVerdict.OPPOSITE if small else ClaimVerdict.REVERSED


def common(one: ClaimVerdict, other: ClaimVerdict) -> ClaimVerdict | None:
    """Return the verdict on a direction that two intervals support, one of which contains the other; None without."""
    both = {one, other}
    if len(both) == 1:
        return one
    # A wide interval is not small, and may contain 1.
    sides = {ClaimVerdict.REPLICATED: ClaimVerdict.SMALL, ClaimVerdict.REVERSED: ClaimVerdict.OPPOSITE}
    wider = next((wide for wide, small in sides.items() if both == {wide, small}), None)
    return ClaimVerdict.TIE if both <= set(BELOW) else wider


def margin_of(bounds: Iterable[Bounds], margin: float, ordered_ties: Iterable[Bounds] = ()) -> float:
    """Return the smallest difference of interest: ``margin``, or half of the smallest effect that a claim states.

    A claim that states an effect below 10 % or below the margin would otherwise be called small for its own effect.
    ``ordered_ties``: claimed ties of figures whose order is claimed, too ("close, xfs ahead"): the order is of interest
    within the tie.
    """
    effects, large = (_effect(each) for each in bounds), max(_LARGE, margin)
    ties = (exp(each.half_width) - 1 for each in ordered_ties)
    stated = [*ties, *(effect for effect in effects if effect is not None and effect < large)]
    return min([margin, *(effect / 2 for effect in stated)])


def _effect(bounds: Bounds) -> float | None:
    """Return the effect that a range of ratios states: that of its middle. None for a direction or a tie."""
    if bounds.is_direction or bounds.side is None:
        return None
    return exp(abs(sum(map(log, bounds.ends)) / len(bounds.ends))) - 1 or None


def at_limit(bounds: Bounds, low: float, high: float, margin: float) -> bool:
    """Return whether the whole interval is at an end of a size's range, that is, nearer to it than :func:`nearness`."""
    if bounds.is_direction or low <= 0:
        return False
    near = nearness(bounds, margin)
    return any(max(abs(log(low / end)), abs(log(high / end))) <= near for end in bounds.ends)


def nearness(bounds: Bounds, margin: float) -> float:
    """Return the distance, on logarithms, that counts as at a limit: the margin, or half of a narrower range."""
    return min(log1p(margin), bounds.half_width)


def of_claim(verdicts: Iterable[ClaimVerdict], *, complete: bool = True) -> ClaimVerdict:
    """Return the verdict on a claim from those on its parts: the first of ``_DECIDING`` decides.

    One tested part that is not replicated decides the claim. Without one, it is not tested unless all parts with
    figures are.
    """
    found = set(verdicts)
    for worst in _DECIDING:
        if worst in found:
            return worst
    if found <= {ClaimVerdict.UNKNOWN}:
        return ClaimVerdict.UNKNOWN
    if not complete or ClaimVerdict.UNKNOWN in found:
        return ClaimVerdict.PARTLY
    return ClaimVerdict.REPLICATED


_DECIDING = (*DECISIVE, ClaimVerdict.NO_LONGER, ClaimVerdict.NOT_TESTED, ClaimVerdict.OPEN)


def of_known(verdicts: Iterable[ClaimVerdict | None]) -> ClaimVerdict | None:
    """Return :func:`of_claim` of the known verdicts; None without any."""
    known = [verdict for verdict in verdicts if verdict is not None]
    return of_claim(known) if known else None


def distance_inside(bounds: Bounds, low: float, high: float) -> float | None:
    """Return how far inside the bounds an interval lies, on logarithms; negative if it lies across or outside.

    None for an interval that begins at 0.
    """
    if low <= 0:
        return None
    below = log(low / bounds.low) if bounds.low > 0 else inf
    above = log(bounds.high / high) if bounds.high < inf else inf
    return min(below, above)


def part_finding(part: Part, verdict: ClaimVerdict, **more: Any) -> PartFinding:
    unit = part.figures[0].metric.unit if part.bounds.of_figure else None
    return PartFinding(
        what=part.name, where=part.where, bound=part.bounds.shown, verdict=verdict, unit=unit, **more
    )


def from_edge(bounds: Bounds, estimate: Estimate) -> Estimate:
    """Return the estimate as a multiple of the nearest end of the bounds that its interval contains, if it does.

    An interval from ranks is not symmetric: it can exclude the nearest end, and contain a farther one.
    """
    ratio, interval = estimate.ratio, estimate.interval
    if ratio is None or interval is None:
        return estimate
    within = [end for end in bounds.ends if interval.low <= end <= interval.high]
    edge = min(within or bounds.ends, key=lambda end: abs(log(ratio / end)))
    shifted = dataclasses.replace(interval, low=interval.low / edge, high=interval.high / edge)
    return dataclasses.replace(estimate, ratio=ratio / edge, interval=shifted)


def firm(
    bounds: Bounds, estimate: Estimate, interval: Interval, margin: float
) -> tuple[ClaimVerdict, ClaimVerdict | None]:
    """Return the verdict of the estimate's ``interval``, and None; or ``open``, and the verdict that it tends to.

    It only tends to a verdict that an interval for an autocorrelation of 0.5 would not give, if there are too few
    blocks to estimate the autocorrelation.
    """
    verdict = of_interval(bounds, interval.low, interval.high, margin)
    wide = estimate.interval_if_correlated
    if wide is None:
        return verdict, None
    agreed = common(verdict, of_interval(bounds, wide.low, wide.high, margin))
    return (ClaimVerdict.OPEN, verdict) if agreed is None else (agreed, None)


def verdict_of(finding: PartFinding) -> ClaimVerdict:
    """Return what a part contributes to the verdict on its claim.

    If a size differs and its direction fails too, the verdict on the direction counts.
    """
    if finding.verdict is ClaimVerdict.DIFFERS and finding.direction in FAILED:
        return finding.direction
    return finding.verdict


def tendency_of(finding: PartFinding) -> ClaimVerdict:
    """Return :func:`verdict_of`, or the verdict that an open part tends to."""
    return finding.tendency or verdict_of(finding)


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
