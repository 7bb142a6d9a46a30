"""Claims as questions that trials are repeated for: what is open of each, and which cells can tell. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fslab.analysis.interim import Question
from fslab.analysis.pairs import looks_of
from fslab.cell import Cell
from fslab.claims.build import parts_of
from fslab.claims.evaluate import ERROR, Evaluator, from_edge
from fslab.claims.model import ClaimVerdict, PartFinding
from fslab.claims.parts import Part
from fslab.claims.schema import Claim
from fslab.claims.scope import Scope
from fslab.claims.trials import Trials
from fslab.record import TrialRecord
from fslab.stopping import StoppingRule

Asked = Callable[[Sequence[TrialRecord]], Iterator[Question]]


def questions_of(
    claims: Sequence[Claim], cells: Sequence[Cell], stopping: StoppingRule, memory_bytes: int | None
) -> Asked:
    """What is to be asked of the trials there are: every part of every claim, at each look.

    A part is settled when it holds, when its claim is contradicted, or when all of its interval lies within the
    study's precision of the bound: nearer than anybody wants to know. Before 20 blocks what it holds or is contradicted
    by must hold also were each trial like the one before.
    """
    scope = Scope(cells=tuple(cells), memory_bytes=memory_bytes)
    known = [(claim, parts_of(claim, scope)[0]) for claim in claims]

    def ask(trials: Sequence[TrialRecord]) -> Iterator[Question]:
        judge = Evaluator(trials=Trials(records=trials), looks=looks_of(stopping))
        for claim, parts in known:
            findings = [judge.finding(part, len(parts)) for part in parts]
            over = any(
                _sure(finding) and finding.verdict is ClaimVerdict.CONTRADICTED for finding in findings
            )
            for part, finding in zip(parts, findings, strict=True):
                yield _question(claim, part, finding, judge, stopping, over=over)

    return ask


def _sure(finding: PartFinding) -> bool:
    return finding.verdict is not ClaimVerdict.UNDECIDED and not finding.rests_on_independence


def _question(
    claim: Claim, part: Part, finding: PartFinding, judge: Evaluator, stopping: StoppingRule, *, over: bool
) -> Question:
    estimate = judge.estimate(part, 1 - ERROR)
    shifted = from_edge(part.bounds, estimate)
    precision = stopping.precision or 0.0
    near = shifted.interval is not None and (
        1 / (1 + precision) <= shifted.interval.low and shifted.interval.high <= 1 + precision
    )
    return Question(
        workload=f"claim {claim.id}" + (f" ({part.where})" if part.where else ""),
        metric=part.figures[0].metric.name,
        a=part.over,
        b=part.under,
        cells=tuple(dict.fromkeys(figure.cell.id for figure in part.figures)),
        estimate=estimate,
        settled=over or near or _sure(finding),
        further=finding.further,
        claim=claim.id,
        bound=part.bounds.shown,
        unit=finding.unit,
    )
