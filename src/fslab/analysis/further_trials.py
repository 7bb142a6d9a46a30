"""Decides whether the comparisons of a campaign are settled, and which cells need more trials. Pure.

``allocate`` divides the rest of the budget among open questions, for the most verdicts per second: those with the least
effort come first, until the time is used up. Cells that one question pays for are free for the next. A question whose
forecast is certainly more than all of the time is given up, and its time goes to the others.

Each interim analysis uses all trials, as the report does. A settled comparison becomes open again if its cells get more
trials for other comparisons and these contradict it. So the last verdicts of a campaign are always those of its table.
Frequent looks do not increase the error rate, because every interval is computed for all looks together
(``stats.interim_looks``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from fslab.analysis.labels import stack_names
from fslab.analysis.noise_pools import CampaignNoise
from fslab.analysis.table_rows import answers_of_row, same_stacks
from fslab.analysis.usable_trials import exhausted_cells
from fslab.analysis.workload_groups import by_cell, groups, mean_s, metrics_of
from fslab.answers.ratio import Goal, most_forecast
from fslab.cell import Cell
from fslab.stats import Interval
from fslab.stopping_settings import StoppingRule, Until
from fslab.trial_record import TrialRecord
from fslab.units import Direction, Unit

# If all questions are given up, the cheapest is measured nevertheless, up to so many times the time that is left.
_HOPE = 4

Cost = Callable[[str], float]  # maps the id of a cell to the seconds of one trial


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """Further trials. ``blocks``: how many more by cell id. ``seconds``: the time for all of them."""

    blocks: dict[str, int]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An open claim, or an open row of a table. ``blocks``: in how many blocks it was measured; a forecast from more
    blocks is more reliable."""

    name: str
    effort: Effort
    blocks: int


@dataclass(kw_only=True, slots=True)
class BudgetAllocation:
    """What to measure next: ``cells`` get trials now, for those in ``chosen``; ``seconds`` is the time for these.

    ``waiting``: what comes when others are decided. ``given_up``: what is beyond the time that is left.
    """

    cells: set[str] = field(default_factory=set)
    chosen: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    seconds: float = 0.0


def allocate(candidates: Sequence[Candidate], cost: Cost, left_s: float | None) -> BudgetAllocation:
    """Choose what to measure in the ``left_s`` seconds that are left (None: no limit)."""
    ordered = sorted(candidates, key=lambda candidate: candidate.effort.seconds)
    within = [
        one for one in ordered if left_s is None or one.effort.seconds <= most_forecast(left_s, one.blocks)
    ]
    found = _in_order(within, cost, left_s)
    found.given_up = [one.name for one in ordered if one not in within]
    if candidates and not found.chosen:  # spend the time where it is most likely to help
        best = ordered[0]
        if left_s is not None and best.effort.seconds <= _HOPE * left_s:
            found.given_up.remove(best.name)
            found.chosen.append(best.name)
            found.cells, found.seconds = set(best.effort.blocks), left_s
    return found


def _in_order(candidates: Sequence[Candidate], cost: Cost, left_s: float | None) -> BudgetAllocation:
    """Choose one question after the other until the time is used up; at least the first."""
    found = BudgetAllocation()
    paid: dict[str, int] = {}
    for one in candidates:
        more = {cell: max(0, blocks - paid.get(cell, 0)) for cell, blocks in one.effort.blocks.items()}
        seconds = sum(cost(cell) * blocks for cell, blocks in more.items())
        if left_s is not None and found.chosen and found.seconds + seconds > left_s:
            found.waiting.append(one.name)
            continue
        found.chosen.append(one.name)
        found.seconds += seconds
        found.cells |= one.effort.blocks.keys()
        paid |= {cell: paid.get(cell, 0) + blocks for cell, blocks in more.items()}
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatedQuestion:
    """One question for which trials are repeated. ``a`` and ``b`` are the displayed names of the stacks.

    ``first``: whether the metric is the first of its workload in the table. ``blocks``: in how many both have a value.
    ``claim`` is the id of the claim to which it belongs, or None; this claim states that the ratio lies in ``bound``.
    With a ``unit``, ``ratio`` and ``interval`` are of a figure of ``a`` instead.
    """

    workload: str
    metric: str
    a: str
    b: str
    cells: tuple[str, ...]
    ratio: float | None
    interval: Interval | None
    settled: bool
    further: int | None = None
    blocks: int = 0
    first: bool = True
    claim: str | None = None
    bound: str | None = None
    unit: Unit | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimsProgress:
    """Progress of a study's claims, by id, and the ``cells`` that get the next trials.

    ``open``: claims that get more trials or wait for others. ``given_up``: claims that take longer than the time that
    is left. ``at_limit``: claims whose figures are closer to their limits than the margin. ``untestable``: number of
    claims that cannot be evaluated. ``left_s``: rest of the budget; None without a budget.
    """

    decided: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    at_limit: tuple[str, ...] = ()
    untestable: int = 0
    cells: frozenset[str] = frozenset()
    left_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class InterimResult:
    """The result of an interim analysis after ``blocks`` blocks.

    ``needing``: ids of the cells that get the next trials. ``claims``: None unless trials are repeated for claims.
    """

    blocks: int
    questions: tuple[RepeatedQuestion, ...]
    needing: frozenset[str] = frozenset()
    claims: ClaimsProgress | None = None

    @property
    def open(self) -> tuple[RepeatedQuestion, ...]:
        return tuple(question for question in self.questions if not question.settled)


# Trials, cells that get no more trials, seconds left → the questions of the claims and the claims' progress.
Ask = Callable[
    [Sequence[TrialRecord], frozenset[str], float | None], tuple[tuple[RepeatedQuestion, ...], ClaimsProgress]
]


@dataclass(frozen=True, kw_only=True, slots=True)
class InterimAnalysis:
    """Stateless interim analysis. With ``ask``, its questions are those of claims instead of those of the table."""

    cells: Sequence[Cell]
    stopping: StoppingRule
    ask: Ask | None = None

    def look(self, trials: Sequence[TrialRecord], blocks: int, left_s: float | None = None) -> InterimResult:
        """Return the result for the trials of the first ``blocks`` blocks; ``left_s`` is the rest of the budget."""
        counted = [trial for trial in trials if trial.key.block < blocks]
        spent = exhausted_cells(counted)
        if self.ask is not None:
            asked, progress = self.ask(counted, spent, left_s)
            return InterimResult(
                blocks=blocks, questions=asked, needing=progress.cells - spent, claims=progress
            )
        asked = tuple(questions(self.cells, counted, self.stopping))
        possible = [each for each in asked if not each.settled and spent.isdisjoint(each.cells)]
        return InterimResult(blocks=blocks, questions=asked, needing=self._next(possible, counted, left_s))

    def _next(
        self, asked: Sequence[RepeatedQuestion], trials: Sequence[TrialRecord], left_s: float | None
    ) -> frozenset[str]:
        """Return the cells of those open questions that the rest of the budget and the maximum are enough for.

        By the first figure of a workload, the maximum is tried whatever the forecast says; the budget counts for all.
        """
        cost_s = {cell: mean_s(own) or 0.0 for cell, own in by_cell(trials).items()}
        candidates = []
        for number, each in enumerate(asked):
            further = each.further or 1
            if each.first or further <= most_forecast(self.stopping.most - each.blocks, each.blocks):
                effort = Effort(
                    blocks=dict.fromkeys(each.cells, further),
                    seconds=further * sum(cost_s.get(cell, 0.0) for cell in each.cells),
                )
                candidates.append(Candidate(name=str(number), effort=effort, blocks=each.blocks))
        return frozenset(allocate(candidates, lambda cell: cost_s.get(cell, 0.0), left_s).cells)


def questions(
    cells: Sequence[Cell], trials: Sequence[TrialRecord], stopping: StoppingRule
) -> Iterator[RepeatedQuestion]:
    """Yield the comparisons of each row of the table: of all stacks by the first figure of a workload, and with the
    leader by the others."""
    noise = CampaignNoise(trials=trials)
    specs = {cell.stack_id: cell.stack for cell in cells}
    names, same = stack_names(cells), same_stacks(specs, trials)
    for group in groups(cells, trials):
        for number, metric in enumerate(metrics_of(group)):
            if number > 0 and metric.better is Direction.NEITHER:
                continue
            goal = Goal(stopping.until.value)
            row = answers_of_row(group, metric, stopping, noise=noise, same=same, goal=goal)
            # Of other figures than the first, a difference that rests on independent trials ends the repetition.
            settles_if_it_holds = number > 0 and stopping.until is not Until.PRECISE
            for each in row.repeated(first=number == 0):
                yield RepeatedQuestion(
                    workload=group.label, metric=metric.name, a=names[each.over], b=names[each.under],
                    cells=(group.cells[each.over].id, group.cells[each.under].id), ratio=each.ratio,
                    interval=each.interval, settled=each.settled or (settles_if_it_holds and each.holds is True),
                    further=each.further, blocks=min(each.n), first=number == 0,
                )  # fmt: skip


def spent_s(records: Sequence[TrialRecord]) -> float:
    """Return the time that the trials took of a budget: their own, and the time between one and the next.

    The latter is the shortest one, because others contain waits for other campaigns, which do not count, and the time
    until a resume. In a guest it is about 0.4 s, in which disks are plugged in and the trial is stored: 2 of 65
    minutes.
    """
    ordered = sorted(records, key=lambda record: record.started)
    pauses = [
        (after.started - before.started).total_seconds() - before.duration_s
        for before, after in pairwise(ordered)
    ]
    pause_s = max(0.0, min(pauses, default=0.0))
    return sum(record.duration_s for record in records) + len(records) * pause_s
