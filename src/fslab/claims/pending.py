"""Claims as questions that trials are repeated for: what is open of each, and which cells can tell. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fslab.analysis.interim import Question
from fslab.analysis.pairs import looks_of
from fslab.cell import Cell
from fslab.claims.build import asked_of
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import FAILED, ClaimAnswer, ClaimVerdict, PartFinding
from fslab.claims.multiplicity import Asked, answers
from fslab.claims.parts import Part
from fslab.claims.schema import Claim
from fslab.claims.scope import Scope
from fslab.claims.trials import Trials
from fslab.record import TrialRecord
from fslab.stopping import StoppingRule

Questions = Callable[[Sequence[TrialRecord]], Iterator[Question]]


def questions_of(
    claims: Sequence[Claim], cells: Sequence[Cell], stopping: StoppingRule, memory_bytes: int | None
) -> Questions:
    """What is to be asked of the trials there are: every part of every claim, at each look.

    A part is settled when it has a verdict, when its claim has one that no part can change, or when all of its interval
    is nearer to its limit than the margin of interest. Before 20 blocks a verdict must hold also were each trial like
    the one before.
    """
    scope = Scope(cells=tuple(cells), memory_bytes=memory_bytes)
    asked = [asked_of(claim, scope) for claim in claims]

    def ask(trials: Sequence[TrialRecord]) -> Iterator[Question]:
        judge = Evaluator(trials=Trials(records=trials), looks=looks_of(stopping))
        for claim, what, answer in zip(claims, asked, answers(asked, judge), strict=True):
            yield from _of_claim(claim, what, answer, judge)

    return ask


def _of_claim(claim: Claim, asked: Asked, answer: ClaimAnswer, judge: Evaluator) -> Iterator[Question]:
    over = any(finding.verdict in FAILED and _is_settled(finding) for finding in answer.findings)
    for part, finding in zip(asked.parts, answer.findings, strict=True):
        yield _question(claim, part, finding, judge, settled=over or _is_settled(finding))


def _is_settled(finding: PartFinding) -> bool:
    return finding.at_limit or (
        finding.verdict is not ClaimVerdict.OPEN and not finding.rests_on_independence
    )


def _question(claim: Claim, part: Part, finding: PartFinding, judge: Evaluator, *, settled: bool) -> Question:
    return Question(
        workload=f"claim {claim.id}" + (f" ({part.where})" if part.where else ""),
        metric=part.figures[0].metric.name,
        a=part.over,
        b=part.under,
        cells=tuple(dict.fromkeys(figure.cell.id for figure in part.figures)),
        estimate=judge.estimate(part, finding.coverage or 1 - judge.error),
        settled=settled,
        further=finding.further,
        claim=claim.id,
        bound=part.bounds.shown,
        unit=finding.unit,
    )
