"""Plans which trials a campaign runs: a fixed number of blocks, or blocks until the comparisons are settled.

A fixed number counts usable trials: further blocks, at most as many as were asked for, replace invalid ones.

Depends only on the stored trials, so a resumed campaign continues exactly as it would have. Runs nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from fslab.analysis.further_trials import InterimAnalysis, InterimResult, spent_s
from fslab.analysis.table_rows import looks_of
from fslab.analysis.usable_trials import exhausted_cells, is_failed, is_invalid, is_usable
from fslab.analysis.workload_groups import groups
from fslab.cell import Cell, by_workload
from fslab.claims import testable
from fslab.claims.published import Printed
from fslab.claims.schema import Claim
from fslab.claims.undecided import cells_of, questions_of
from fslab.claims.verdict import BLOCKS_LEAST
from fslab.machine.planned_machine import here
from fslab.plan.expand import order_block
from fslab.plan.plan import trial_s
from fslab.stopping_settings import StoppingRule, Until
from fslab.store.campaign import RunBudget
from fslab.study.model import Study
from fslab.trial_record import TrialRecord
from fslab.units import counted, format_duration


@dataclass(kw_only=True, slots=True)
class Schedule:
    """The trials of a campaign. ``trials``: all that are planned so far; ``look`` plans more if they are not enough.

    ``claims``: the claims to decide, if trials are repeated for claims; ``printed``: the publication's figures, without
    which they cannot all be judged. ``memory_bytes``: of the machine. ``without``:
    ids of cells that this machine cannot measure, and those that only claims need which cannot be tested; they are
    never planned, and nothing waits for them. ``budget_s``: the
    time for the trials of a run, without those stored ``earlier``; ``runs``: the budgets of all runs, this one last. A
    campaign for claims gives up claims that the budget does not reach; in it, cells that no claim is about (``idle``)
    come last, with the study's number of trials. ``together``: the cells of each workload.
    """

    cells: Sequence[Cell]
    stopping: StoppingRule
    seed: int
    claims: Sequence[Claim] = ()
    printed: Printed = field(default_factory=dict)
    memory_bytes: int | None = None
    without: frozenset[str] = frozenset()
    budget_s: float | None = None
    runs: Sequence[RunBudget] = ()
    earlier: frozenset[tuple[int, str]] = frozenset()
    trials: list[tuple[int, Cell]] = field(default_factory=list)
    blocks: int = 0
    idle: frozenset[str] = frozenset()
    together: list[list[Cell]] = field(init=False)
    analysis: InterimAnalysis = field(init=False)

    def __post_init__(self) -> None:
        self.together = by_workload(self.cells)
        ask = None
        possible = [cell for cell in self.cells if cell.id not in self.without]
        serving = frozenset(cell.id for cell in possible)
        if self.stopping.until is Until.CLAIMS:
            ask = questions_of(self.claims, possible, self.stopping, self.memory_bytes, self.printed)
            about = cells_of(self.claims, possible, self.memory_bytes) or serving
            self.idle = serving - about
            serving = about
        self.analysis = InterimAnalysis(cells=possible, stopping=self.stopping, ask=ask)
        self._plan(self.stopping.trials, serving)

    def look(self, records: Sequence[TrialRecord]) -> InterimResult | None:
        """Analyse the trials once all planned ones have ended, and plan more if they are not enough.

        Returns None in a campaign with a fixed number of trials: there, it only replaces invalid ones.
        """
        looks = looks_of(self.stopping)
        if looks is None:
            if self.blocks < 2 * self.stopping.trials:
                self._plan(self.blocks + 1, self.to_replace(records))
            return None
        seen = self.analysis.look(records, self.blocks, self._left_s(records))
        if seen.claims is not None:
            self._plan_for(looks.next_after(self.blocks), seen.needing)
        elif seen.needing and self.blocks < self.stopping.most:
            self._plan(min(looks.next_after(self.blocks), self.stopping.most), seen.needing)
        return seen

    def affordable(self, records: Sequence[TrialRecord]) -> int | None:
        """Return after how many blocks the budget ends, before the first look; None if it does not end the campaign
        before the maximum, and after that look: its error was spent by another plan.

        Only the times of trials decide, no figure. Workloads that are decided leave their time to the others: half of
        it is counted, or the dearest workload.
        """
        stopping, left_s = self.stopping, self._left_s(records)
        if (
            looks_of(stopping) is None or stopping.until is Until.CLAIMS or stopping.planned_most is not None
            or left_s is None or self.blocks > stopping.trials
        ):  # fmt: skip
            return None
        workload_of = {cell.id: number for number, own in enumerate(self.together) for cell in own}
        costs_s = [0.0] * len(self.together)
        for record in records:
            costs_s[workload_of[record.cell.id]] += record.duration_s / self.blocks
        block_s = max(*costs_s, sum(costs_s) / 2)
        most = self.blocks + int(left_s / block_s) if block_s else stopping.most
        return most if most < stopping.most else None

    def replan(self, stopping: StoppingRule) -> None:
        """Go on by another rule."""
        self.stopping, self.analysis = stopping, replace(self.analysis, stopping=stopping)

    def _plan_for(self, until: int, wanted: frozenset[str]) -> None:
        """Plan blocks for open claims; then, once, cells that no claim is about.

        Blocks continue while a cell has fewer trials than the maximum: not every block contains every cell.
        """
        if self.idle and not wanted:
            # With the other cells of their workloads: trials of a block are compared, so they must be close in time.
            beside = {
                cell.id for each in self.together if any(c.id in self.idle for c in each) for cell in each
            }
            self._plan(self.blocks + self.stopping.trials, frozenset(beside) - self.without)
            self.idle = frozenset()
            return
        counts = Counter(cell.id for _, cell in self.trials)
        self._plan(until, frozenset(cell for cell in wanted if counts[cell] < self.stopping.most))

    def _left_s(self, records: Sequence[TrialRecord]) -> float | None:
        return None if self.budget_s is None else max(0.0, self.budget_s - self.spent_s(records))

    def spent_s(self, records: Sequence[TrialRecord]) -> float:
        """Return the time that the planned trials of this run took, by their recorded times."""
        planned = {(block, cell.id) for block, cell in self.trials}
        counted = [record for record in records if _key(record) in planned]
        earlier = [record for record in counted if _key(record) in self.earlier]
        return max(0.0, spent_s(counted) - spent_s(earlier))

    def begin_run(self, records: Sequence[TrialRecord], budget_s: float | None) -> None:
        """Begin a run with its own budget: the time of the trials stored so far does not count."""
        self.budget_s, self.earlier = budget_s, frozenset(map(_key, records))

    def _rerun(self, records: Sequence[TrialRecord]) -> None:
        """Go back to the run that planned the next stored trials: its budget was in force at the next look.

        If there are none, the last run is the one that looks now.
        """
        planned = {(block, cell.id) for block, cell in self.trials}
        following = min((record.started for record in records if _key(record) not in planned), default=None)
        then = [run for run in self.runs if following is None or run.began <= following]
        if then:
            before = [record for record in records if record.started < then[-1].began]
            self.begin_run(before, then[-1].budget_s)

    def catch_up(self, records: Sequence[TrialRecord]) -> InterimResult | None:
        """Repeat the interim analyses that the trials of a resumed campaign have passed. Returns the last one."""
        stored = {(record.key.block, record.cell.id) for record in records}
        last = None
        while True:
            spent = exhausted_cells([record for record in records if record.key.block < self.blocks])
            left = {(block, cell.id) for block, cell in self.trials if cell.id not in spent} - stored
            planned = len(self.trials)
            if left:
                return last
            self._rerun(records)
            seen = self.look(records)
            if len(self.trials) == planned:  # the last analysis: the campaign reports it when it gets there
                return last
            last = seen

    def to_replace(self, records: Sequence[TrialRecord]) -> frozenset[str]:
        """Return the ids of the cells of the next block, which replaces invalid trials.

        If one cell of a workload lacks trials, all cells of the workload are repeated: a trial is compared only with
        others of its block. A cell whose trials were all invalid is not repeated: the next would be invalid too.
        """
        counted = [record for record in records if record.key.block < self.blocks]
        wanted: set[str] = set()
        for group in groups(self.analysis.cells, counted):
            if any(self._lacks(own) for own in group.trials.values()):
                wanted |= {
                    cell.id for stack, cell in group.cells.items() if any(map(is_usable, group.trials[stack]))
                }
        return frozenset(wanted) - exhausted_cells(counted)

    def _lacks(self, own: Sequence[TrialRecord]) -> bool:
        usable, invalid = sum(map(is_usable, own)), sum(map(is_invalid, own))
        return bool(usable and invalid) and usable + sum(map(is_failed, own)) < self.stopping.trials

    def _plan(self, until: int, wanted: frozenset[str]) -> None:
        if not wanted:
            return
        for block in range(self.blocks, until):
            # The order is drawn for all cells of a block, so that omitting some does not change it for the others.
            whole = order_block(self.together, block, self.seed)
            self.trials += [(block, cell) for cell in whole if cell.id in wanted]
        self.blocks = until


def _key(record: TrialRecord) -> tuple[int, str]:
    return record.key.block, record.cell.id


def claimed_cells(study: Study, cells: Sequence[Cell], memory_bytes: int | None) -> list[Cell]:
    """Return the cells that claims are about, if trials are repeated for claims; else none.

    ``cells``: those that have trials.
    """
    wanted = cells_of(study.claims, cells, memory_bytes) if study.for_claims else frozenset()
    return [cell for cell in cells if cell.id in wanted]


def left_out(study: Study, cells: Sequence[Cell]) -> frozenset[str]:
    """Return the ids of the cells without trials, because only claims need them that cannot be tested here.

    ``cells``: those that can be measured here.
    """
    return (
        frozenset(testable.excluded(study.claims, cells, here().facts)) if study.for_claims else frozenset()
    )


def beside_claims(possible: int, left_out: int, about: int) -> Iterator[str]:
    """Yield how many of the ``possible`` cells have no trials, or come last, because of what claims are about.

    ``left_out``: those without trials; ``about``: those that claims are about, 0 if no trials are run for claims.
    """
    measured = possible - left_out
    if left_out:
        yield (
            f"no trials of {left_out} of {counted(possible, 'cell')}: only claims, or parts of claims, that cannot "
            "be tested here need them (--trials N measures all cells)"
        )
    if 0 < about < measured:
        yield (
            f"no claim is about {measured - about} of {counted(measured, 'cell')}: they are measured last, as far as "
            "the budget reaches"
        )


def blocks_of(cells: Sequence[Cell], budget_s: float) -> float:
    """Return how many blocks of these cells the budget pays for; 0 without cells."""
    whole_s = block_s(cells)
    return budget_s / whole_s if whole_s else 0.0


def block_s(cells: Sequence[Cell]) -> float:
    """Return the expected duration of one block: one trial of each of these cells."""
    return sum(map(trial_s, cells))


def too_small(about: Sequence[Cell], budget_s: float | None) -> str | None:
    """Return a message if the budget ends before three blocks, the minimum for deciding any claim; else None."""
    if budget_s is None or not about or blocks_of(about, budget_s) >= BLOCKS_LEAST:
        return None
    needed_s = BLOCKS_LEAST * block_s(about)
    return (
        f"the budget of {format_duration(budget_s)} is too small to decide any claim: it is enough for "
        f"{blocks_of(about, budget_s):.1f} trials of each of the {len(about)} cells with claims, and at least "
        f"{BLOCKS_LEAST} are needed: --budget {round(needed_s / 60) + 1}m"
    )


def budget_words(about: Sequence[Cell], budget_s: float | None) -> str | None:
    """Return, in one sentence, what the budget means for the claims about these cells; None without a budget."""
    if budget_s is None:
        return None
    trials, cells = counted(round(blocks_of(about, budget_s)), "trial"), counted(len(about), "cell")
    few = too_small(about, budget_s)
    return f"claims: {few or f'the budget is enough for about {trials} of each of {cells}'}"
