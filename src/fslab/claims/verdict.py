"""Interval, bounds and margin of interest → verdict; verdicts of parts → verdict of a claim. Pure.

A *direction* (``> 1``) is replicated when the interval lies on its side of 1. It is a tie when the interval lies within
the margin on both sides of 1: two one-sided tests (Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657). It is
reversed when the interval lies on the other side. One of the three is reached sooner or later, wherever the truth is. A
*size* (``>= 2``, ``~ 3 within 10%``, a tie that is claimed) is replicated when the interval lies within its range, and
differs when it lies outside; where the truth is at the end of the range neither is ever reached: ``at_limit``.
"""

from collections.abc import Iterable, Sequence
from math import inf, log, log1p

from fslab.claims.model import FAILED, ClaimVerdict, PartFinding
from fslab.claims.parts import Bounds


def of_interval(bounds: Bounds, low: float, high: float, margin: float) -> ClaimVerdict:
    """What an interval says of one part."""
    if bounds.hold(low, high):
        return ClaimVerdict.REPLICATED
    if bounds.is_direction and 1 / (1 + margin) <= low and high <= 1 + margin:
        return ClaimVerdict.TIE
    if not bounds.exclude(low, high):
        return ClaimVerdict.OPEN
    return ClaimVerdict.REVERSED if bounds.is_direction else ClaimVerdict.DIFFERS


def at_limit(bounds: Bounds, low: float, high: float, margin: float) -> bool:
    """Whether all of the interval is nearer to an end of a size's range than anybody wants to know."""
    if bounds.is_direction:
        return False
    near = nearness(bounds, margin)
    ends = [end for end in (bounds.low, bounds.high) if 0 < end < inf]
    return any(max(abs(log(low / end)), abs(log(high / end))) <= near for end in ends)


def nearness(bounds: Bounds, margin: float) -> float:
    """How near to a limit counts as at it, on logarithms: the margin, or half of a range that is narrower."""
    return min(log1p(margin), bounds.half_width)


def of_claim(verdicts: Iterable[ClaimVerdict], *, complete: bool = True) -> ClaimVerdict:
    """The verdict on a conjunction: the first part that fails decides."""
    found = set(verdicts)
    for worst in (*FAILED, ClaimVerdict.OPEN):
        if worst in found:
            return worst
    if found <= {ClaimVerdict.UNKNOWN}:
        return ClaimVerdict.UNKNOWN
    return ClaimVerdict.REPLICATED if complete and ClaimVerdict.UNKNOWN not in found else ClaimVerdict.PARTLY


def of_directions(findings: Sequence[PartFinding], directions: Sequence[bool]) -> ClaimVerdict | None:
    """The verdict on all that a claim says of directions; ``directions`` tells which parts are only that."""
    told = [
        finding.verdict if only else finding.direction
        for finding, only in zip(findings, directions, strict=True)
        if only or finding.direction is not None
    ]
    return of_claim(one for one in told if one is not None) if told else None


def of_sizes(findings: Sequence[PartFinding], directions: Sequence[bool]) -> ClaimVerdict | None:
    """The verdict on all that it says of sizes; None where it says nothing of any."""
    told = [finding.verdict for finding, only in zip(findings, directions, strict=True) if not only]
    return of_claim(told) if told else None
