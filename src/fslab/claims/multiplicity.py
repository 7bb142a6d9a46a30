"""Evaluates all claims of a study together, so that at most 5 % of the verdicts given are expected to be false. Pure.

The level of each claim follows Benjamini & Hochberg's step-up procedure (J. R. Statist. Soc. B 57 (1995) 289): with r
verdicts among m claims, each is tested at r/m of the error. A claim is a family whose parts share that error
(``evaluate``): selective inference on families, Benjamini & Bogomolov, J. R. Statist. Soc. B 76 (2014) 297. This loses
less power than Holm's correction over all parts of all claims, and almost none if all but a few claims are clear.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from fslab.claims.evaluate import Evaluator
from fslab.claims.model import UNTESTED, ClaimAnswer, ClaimVerdict, Unmet
from fslab.claims.parts import Part
from fslab.claims.requirement_check import RequirementCheck, Setting
from fslab.claims.requirements import Lever
from fslab.claims.written_requirements import Demand

_UNDECIDED = {ClaimVerdict.OPEN, *UNTESTED}


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimParts:
    """One claim as its parts. ``missing``: parts without cells. ``margin``: the smallest difference of interest.
    ``demands``, ``lever``: what it requires of the cells that decide it."""

    parts: Sequence[Part]
    missing: Sequence[str]
    margin: float
    demands: Sequence[Demand] = ()
    lever: Lever | None = None


def answers(
    claims: Sequence[ClaimParts], judge: Evaluator, setting: Setting | None = None
) -> tuple[ClaimAnswer, ...]:
    """Return the answers of the trials to all claims together. Claims without a tested part do not count.

    ``setting``: what is known beside the trials, by which they are seen to test a claim.
    """
    others = [each.trials for each in judge.others]
    check = RequirementCheck(trials=judge.trials, others=others, setting=setting or Setting())
    unmet = [[check.unmet(part, claim.demands, claim.lever) for part in claim.parts] for claim in claims]
    at = partial(_at, check, claims, unmet, judge)
    found = at(judge.error)
    testable = sum(answer.verdict not in UNTESTED for answer in found)
    decided = testable
    while True:
        now = sum(answer.verdict not in _UNDECIDED for answer in found)
        if now >= decided or now == 0:
            return found
        decided = now
        found = at(judge.error * decided / testable)


def _at(
    check: RequirementCheck, claims: Sequence[ClaimParts], unmet: Sequence[Sequence[Unmet | None]], judge: Evaluator,
    error: float,
) -> tuple[ClaimAnswer, ...]:  # fmt: skip
    strict = dataclasses.replace(judge, error=error)
    return tuple(
        check.answer(strict, claim.parts, claim.missing, claim.margin, lacking)
        for claim, lacking in zip(claims, unmet, strict=True)
    )
