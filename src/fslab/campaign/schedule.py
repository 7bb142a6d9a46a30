"""Which trials a campaign runs: a fixed number of blocks, or blocks until the comparisons are settled.

A fixed number is one of usable trials: invalid ones are replaced in further blocks, at most as many as were asked for.

Derived from the stored trials alone, so that a resumed campaign goes on exactly as it would have. Runs nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fslab.analysis.groups import groups
from fslab.analysis.interim import ClaimsProgress, InterimAnalysis, InterimResult
from fslab.analysis.pairs import looks_of
from fslab.analysis.usability import exhausted_cells, is_failed, is_invalid, is_usable
from fslab.cell import Cell
from fslab.claims.pending import cells_of, questions_of
from fslab.claims.schema import Claim
from fslab.plan.order import order_block
from fslab.record import TrialRecord
from fslab.stopping import StoppingRule, Until


@dataclass(kw_only=True, slots=True)
class Schedule:
    """``trials`` are all that are planned so far; ``look`` plans more, or says that it is enough.

    ``claims`` are what is to be decided where trials are repeated until claims are; ``memory_bytes`` is the machine's.
    ``without`` are ids of cells that this machine cannot do: they are never planned, and nothing waits for them.
    ``budget_s`` is what all trials together may take; a campaign for claims gives up those that it does not reach.
    Cells that no claim is about come last then, with the trials of the study.
    """

    cells: Sequence[Cell]
    stopping: StoppingRule
    seed: int
    claims: Sequence[Claim] = ()
    memory_bytes: int | None = None
    without: frozenset[str] = frozenset()
    budget_s: float | None = None
    trials: list[tuple[int, Cell]] = field(default_factory=list)
    blocks: int = 0
    idle: frozenset[str] = frozenset()
    analysis: InterimAnalysis = field(init=False)

    def __post_init__(self) -> None:
        ask = None
        possible = [cell for cell in self.cells if cell.id not in self.without]
        serving = frozenset(cell.id for cell in possible)
        if self.stopping.until is Until.CLAIMS:
            ask = questions_of(self.claims, possible, self.stopping, self.memory_bytes)
            about = cells_of(self.claims, possible, self.memory_bytes) or serving
            self.idle, serving = serving - about, about
        self.analysis = InterimAnalysis(cells=possible, stopping=self.stopping, ask=ask)
        self._plan(self.stopping.trials, serving)

    def look(self, records: Sequence[TrialRecord]) -> InterimResult | None:
        """To be asked when all planned trials are over: what is known now; more are planned if that is not enough.

        None in a campaign with a fixed number of trials, where invalid ones are replaced.
        """
        looks = looks_of(self.stopping)
        if looks is None:
            if self.blocks < 2 * self.stopping.trials:
                self._plan(self.blocks + 1, self.to_replace(records))
            return None
        seen = self.analysis.look(records, self.blocks, self._left_s(records))
        if seen.claims is not None:
            self._plan_for(seen.claims, looks.next_after(self.blocks), seen.needing)
        elif seen.needing and self.blocks < self.stopping.most:
            self._plan(min(looks.next_after(self.blocks), self.stopping.most), seen.needing)
        return seen

    def _plan_for(self, claims: ClaimsProgress, until: int, wanted: frozenset[str]) -> None:
        """The next blocks for open claims; then, once, cells that no claim is about; then verdicts that are tentative.

        Blocks go on as long as any cell has not the most that a cell gets: not all are in every block.
        """
        if self.idle and (claims.firming or not wanted):
            # Blocks of their own, side by side, with the numbers of the first.
            self.trials += self._in_blocks(range(self.stopping.trials), self.idle)
            self.idle = frozenset()
            return
        counts = Counter(cell.id for _, cell in self.trials)
        self._plan(until, frozenset(cell for cell in wanted if counts[cell] < self.stopping.most))

    def _left_s(self, records: Sequence[TrialRecord]) -> float | None:
        """What the planned trials have left of the budget, by their own durations: the same when resumed."""
        if self.budget_s is None:
            return None
        planned = {(block, cell.id) for block, cell in self.trials}
        taken_s = sum(
            record.duration_s for record in records if (record.key.block, record.cell.id) in planned
        )
        return max(0.0, self.budget_s - taken_s)

    def catch_up(self, records: Sequence[TrialRecord]) -> InterimResult | None:
        """Go through the looks that these trials have been through, of a campaign that is resumed; returns the last."""
        stored = {(record.key.block, record.cell.id) for record in records}
        last = None
        while True:
            spent = exhausted_cells([record for record in records if record.key.block < self.blocks])
            left = {(block, cell.id) for block, cell in self.trials if cell.id not in spent} - stored
            planned = len(self.trials)
            if left:
                return last
            seen = self.look(records)
            if len(self.trials) == planned:  # the end; to be told when it is reached
                return last
            last = seen

    def to_replace(self, records: Sequence[TrialRecord]) -> frozenset[str]:
        """Ids of the cells of the next block, which replaces invalid trials: of each workload that lacks some, all.

        A trial is compared with those of its block, so that one alone would be compared with nothing. A cell whose
        trials were all invalid is not repeated: the next would be invalid too.
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
        self.trials += self._in_blocks(range(self.blocks, until), wanted)
        self.blocks = until

    def _in_blocks(self, blocks: Iterable[int], wanted: frozenset[str]) -> Iterator[tuple[int, Cell]]:
        for block in blocks:
            # The order of a block is drawn for all cells: that some need no more changes nothing for the others.
            whole = order_block(self.cells, block, self.seed)
            yield from ((block, cell) for cell in whole if cell.id in wanted)
