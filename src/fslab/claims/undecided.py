"""Evaluates claims between trials: what is still open, and which cells get the next trials. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fslab.analysis.further_trials import (
    Ask,
    BudgetAllocation,
    Candidate,
    ClaimsProgress,
    RepeatedQuestion,
    allocate,
)
from fslab.analysis.table_rows import looks_of
from fslab.cell import Cell
from fslab.claims.build import asked_of
from fslab.claims.campaign_estimates import Trials
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import UNTESTED, ClaimAnswer, ClaimVerdict, OpenReason
from fslab.claims.published import Printed
from fslab.claims.requirement_check import ClaimParts, Setting, answers
from fslab.claims.schema import Claim
from fslab.claims.scope import Scope
from fslab.claims.verdict import effort_of
from fslab.stopping_settings import StoppingRule
from fslab.trial_record import TrialRecord

Answered = Mapping[str, tuple[ClaimParts, ClaimAnswer]]


def questions_of(
    claims: Sequence[Claim], cells: Sequence[Cell], stopping: StoppingRule, memory_bytes: int | None,
    printed: Printed,
) -> Ask:  # fmt: skip
    """Return the function that evaluates all parts of all claims at each interim analysis.

    Trials go to the open claims that give the most verdicts for the time (``allocate``).
    """
    scope, setting = Scope(cells=tuple(cells), memory_bytes=memory_bytes), Setting(printed=printed)
    asked = {claim.id or "": asked_of(claim, scope, stopping) for claim in claims}

    def ask(
        trials: Sequence[TrialRecord], spent: frozenset[str], left_s: float | None
    ) -> tuple[tuple[RepeatedQuestion, ...], ClaimsProgress]:
        evaluator = Evaluator(trials=Trials(records=trials), looks=looks_of(stopping), interim=True)
        found = dict(zip(asked, answers([*asked.values()], evaluator, setting), strict=True))
        answered = {name: (asked[name], answer) for name, answer in found.items()}
        questions = tuple(
            question for name, pair in answered.items() for question in _questions(name, *pair, evaluator)
        )
        full = {cell for cell, own in evaluator.trials.by_cell.items() if len(own) >= stopping.most}
        return questions, _progress(answered, evaluator.trials, spent | full, left_s)

    return ask


def cells_of(claims: Sequence[Claim], cells: Sequence[Cell], memory_bytes: int | None) -> frozenset[str]:
    """Return the ids of the cells that at least one claim is about."""
    scope = Scope(cells=tuple(cells), memory_bytes=memory_bytes)
    parts = (part for claim in claims for part in asked_of(claim, scope).parts)
    return frozenset(figure.cell.id for part in parts for figure in part.figures)


def joined(groups: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Return the unions of those groups that have members in common; empty ones are left out."""
    found: list[frozenset[str]] = []
    for group in filter(None, groups):
        touching = [each for each in found if each & group]
        found = [each for each in found if not each & group] + [group.union(*touching)]
    return found


def _progress(
    answered: Answered, trials: Trials, spent: frozenset[str], left_s: float | None
) -> ClaimsProgress:
    verdicts = {name: answer.verdict for name, (_, answer) in answered.items()}
    still_open = [name for name, verdict in verdicts.items() if verdict is ClaimVerdict.OPEN]
    at_limit = tuple(name for name in still_open if answered[name][1].reason is OpenReason.AT_LIMIT)
    decided = [name for name in verdicts if verdicts[name] not in {ClaimVerdict.OPEN, *UNTESTED}]
    plan = _plan(answered, [name for name in still_open if name not in at_limit], trials, spent, left_s)
    return ClaimsProgress(
        decided=tuple(decided), open=(*plan.chosen, *plan.waiting), given_up=tuple(plan.given_up), at_limit=at_limit,
        untestable=sum(verdict in UNTESTED for verdict in verdicts.values()),
        cells=frozenset(plan.cells), left_s=left_s,
    )  # fmt: skip


def _plan(
    answered: Answered, names: Sequence[str], trials: Trials, spent: frozenset[str], left_s: float | None
) -> BudgetAllocation:
    candidates, lost = [], []
    for name in names:
        asked, answer = answered[name]
        effort = effort_of(asked.parts, answer.findings, trials.cost_s, asked.margin, exhausted=spent)
        if effort is None or not spent.isdisjoint(effort.blocks):
            lost.append(name)
        else:
            left = [each for each in answer.findings if each.verdict is ClaimVerdict.OPEN]
            blocks = min((finding.blocks or 0 for finding in left), default=0)
            candidates.append(Candidate(name=name, effort=effort, blocks=blocks))
    found = allocate(candidates, trials.cost_s, left_s)
    found.given_up += lost
    return found


def _questions(
    name: str, asked: ClaimParts, answer: ClaimAnswer, evaluator: Evaluator
) -> Iterator[RepeatedQuestion]:
    over = answer.verdict is not ClaimVerdict.OPEN
    for part, finding in zip(asked.parts, answer.findings, strict=True):
        found = evaluator.estimate(part, finding.coverage or 1 - evaluator.error, len(asked.parts))
        yield RepeatedQuestion(
            workload=f"claim {name}" + (f" ({part.where})" if part.where else ""),
            metric=part.figures[0].metric.name, a=part.over, b=part.under,
            cells=tuple(dict.fromkeys(figure.cell.id for figure in part.figures)),
            ratio=found.ratio, interval=found.interval,
            settled=over or finding.at_limit or finding.verdict is not ClaimVerdict.OPEN,
            further=finding.further, claim=name, bound=part.bounds.shown, unit=finding.unit,
        )  # fmt: skip
