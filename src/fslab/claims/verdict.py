"""Determines the verdict on a part, from interval, bounds and margin of interest, and on a claim, from its parts. Pure.

A *direction* (``> 1``) is replicated when the interval lies on its side of 1. It is a tie when the interval lies within
the margin on both sides of 1: two one-sided tests (Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657). It is
reversed when the interval lies on the other side. Given enough trials, one of the three is always reached.

A *size* (``>= 2``, ``~ 3 within 10%``, a claimed tie) is replicated when the interval lies within its range, and
differs when it lies outside. If the true value is at the end of the range, neither is ever reached; if it is close,
not in reasonable time: ``at_limit``.
"""

from collections.abc import Iterable, Sequence
from math import log, log1p

from fslab.claims.model import FAILED, ClaimVerdict, PartFinding
from fslab.claims.parts import Bounds


def of_interval(bounds: Bounds, low: float, high: float, margin: float) -> ClaimVerdict:
    """Return the verdict of an interval on one part."""
    if bounds.hold(low, high):
        return ClaimVerdict.REPLICATED
    if bounds.is_direction and 1 / (1 + margin) <= low and high <= 1 + margin:
        return ClaimVerdict.TIE
    if not bounds.exclude(low, high):
        return ClaimVerdict.OPEN
    return ClaimVerdict.REVERSED if bounds.is_direction else ClaimVerdict.DIFFERS


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
    """Return the verdict on a claim from those on its parts: the first of ``FAILED`` decides, then ``open``."""
    found = set(verdicts)
    for worst in (*FAILED, ClaimVerdict.OPEN):
        if worst in found:
            return worst
    if found <= {ClaimVerdict.UNKNOWN}:
        return ClaimVerdict.UNKNOWN
    return ClaimVerdict.REPLICATED if complete and ClaimVerdict.UNKNOWN not in found else ClaimVerdict.PARTLY


def of_directions(findings: Sequence[PartFinding], directions: Sequence[bool]) -> ClaimVerdict | None:
    """Return the verdict on all directions of a claim; None if it has none.

    ``directions``: for each part, whether it is only a direction.
    """
    told = [
        finding.verdict if only else finding.direction
        for finding, only in zip(findings, directions, strict=True)
        if only or finding.direction is not None
    ]
    return of_claim(one for one in told if one is not None) if told else None


def of_sizes(findings: Sequence[PartFinding], directions: Sequence[bool]) -> ClaimVerdict | None:
    """Return the verdict on all sizes of a claim; None if it has none."""
    told = [finding.verdict for finding, only in zip(findings, directions, strict=True) if not only]
    return of_claim(told) if told else None
