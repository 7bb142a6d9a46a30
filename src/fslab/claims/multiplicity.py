"""Evaluates all claims of a study together, so that at most 5 % of the verdicts given are expected to be false. Pure.

The level of each claim follows Benjamini & Hochberg's step-up procedure (J. R. Statist. Soc. B 57 (1995) 289): with r
verdicts among m claims, each is tested at r/m of the error. A claim is a family whose parts share that error
(``evaluate``): selective inference on families, Benjamini & Bogomolov, J. R. Statist. Soc. B 76 (2014) 297. This loses
less power than Holm's correction over all parts of all claims, and almost none if all but a few claims are clear.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from fslab.claims.evaluate import Evaluator
from fslab.claims.model import ClaimAnswer, ClaimVerdict
from fslab.claims.parts import Part

_UNDECIDED = {ClaimVerdict.OPEN, ClaimVerdict.UNKNOWN}


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimParts:
    """One claim as its parts. ``missing``: parts without cells. ``margin``: the smallest difference of interest."""

    parts: Sequence[Part]
    missing: Sequence[str]
    margin: float


def answers(claims: Sequence[ClaimParts], judge: Evaluator) -> tuple[ClaimAnswer, ...]:
    """Return the answers of the trials to all claims together. Claims with the verdict ``unknown`` do not count."""
    found = _at(claims, judge, judge.error)
    testable = sum(answer.verdict is not ClaimVerdict.UNKNOWN for answer in found)
    decided = testable
    while True:
        now = sum(answer.verdict not in _UNDECIDED for answer in found)
        if now >= decided or now == 0:
            return found
        decided = now
        found = _at(claims, judge, judge.error * decided / testable)


def _at(claims: Sequence[ClaimParts], judge: Evaluator, error: float) -> tuple[ClaimAnswer, ...]:
    strict = dataclasses.replace(judge, error=error)
    return tuple(strict.answer(claim.parts, claim.missing, margin=claim.margin) for claim in claims)
