"""Tests of the schedule: which trials run until all comparisons are settled, and the same ones after a crash."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from math import exp
from typing import Any

from tests import made
from tests.made import known

from fslab.analysis.further_trials import InterimResult, RepeatedQuestion, questions
from fslab.analysis.table_rows import RowAnswers, looks_of, row_answers
from fslab.analysis.workload_groups import groups, metrics_of
from fslab.campaign.schedule import Schedule
from fslab.cell import Cell, StackSpec, WorkloadSpec
from fslab.stopping_settings import StoppingRule, Until
from fslab.trial_record import Provenance, Status, TrialRecord, Value
from fslab.units import Direction, Unit

PARAMETERS = {"rw": "randwrite", "bs": "4k", "size": "64m", "runtime": "1s"}
CELLS = tuple(made.cell(name, parameters=PARAMETERS) for name in ("ext4", "xfs", "btrfs"))
WORKLOAD, RAM = CELLS[0].workload, CELLS[0].stack.medium
ValueOf = Callable[[Cell, int], float | None]


def record(cell: Cell, block: int, value: float | None) -> TrialRecord:
    if value is None:
        return made.trial(block, cell, status=Status.FAILED, failure="crashed")
    return made.trial(block, cell, metrics=made.iops(value))


def finished(stopping: StoppingRule, value_of: ValueOf, *, killed_after: int | None = None) -> Schedule:
    """Run a campaign with values of ``value_of`` to its end. ``killed_after``: restart once after this many trials."""
    records: list[TrialRecord] = []
    schedule = Schedule(cells=CELLS, stopping=stopping, seed=1)
    while True:
        for block, cell in schedule.trials:
            if any(known.cell.id == cell.id and known.key.block == block for known in records):
                continue
            if len(records) == killed_after:
                killed_after, schedule = None, Schedule(cells=CELLS, stopping=stopping, seed=1)
                break
            records.append(record(cell, block, value_of(cell, block)))
        else:
            planned = len(schedule.trials)
            schedule.look(records)
            if len(schedule.trials) == planned:
                return schedule


def counts(schedule: Schedule) -> dict[str, int]:
    return dict(Counter(cell.stack.name for _, cell in schedule.trials))


def each(count: int) -> dict[str, int]:
    return dict.fromkeys(("ext4", "xfs", "btrfs"), count)


def row_of(cells: Sequence[Cell], records: Sequence[TrialRecord], **more: Any) -> RowAnswers:
    group = next(groups(cells, records))
    return row_answers(group.samples(metrics_of(group)[0]), Direction.HIGHER, unit=Unit.IOPS, **more)


def noise(cell: Cell, block: int, sigma: float) -> float:
    return exp(random.Random(f"{cell.stack.name}:{block}").gauss(0, sigma))


def wide(cell: Cell, block: int) -> float:
    """Return values with 3 % noise: btrfs is far slower, ext4 and xfs differ by 3 %."""
    return {"ext4": 100.0, "xfs": 103.0, "btrfs": 30.0}[cell.stack.name] * noise(cell, block, 0.03)


def test_without_a_precision_there_are_exactly_the_trials_of_the_study() -> None:
    schedule = finished(StoppingRule(trials=5), wide)
    assert counts(schedule) == each(5)
    assert schedule.look([]) is None


def test_what_is_decided_gets_no_more_trials_and_what_is_open_does() -> None:
    found = counts(finished(StoppingRule(trials=5, precision=0.01), wide))
    assert found["btrfs"] == 5
    assert found["ext4"] == found["xfs"] > 8


def test_no_cell_gets_more_than_the_most() -> None:
    same = finished(StoppingRule(trials=4, precision=0.001, max_trials=9), lambda c, b: noise(c, b, 0.1))
    assert counts(same) == each(9)


def test_the_error_of_all_looks_is_spent_within_the_budget() -> None:
    """A block takes 3 s and the first three took 9 s, so that 21 s pay for seven, not for forty."""
    stopping = StoppingRule(trials=3, precision=0.05, max_trials=40)

    def affordable(budget_s: float | None, rule: StoppingRule = stopping, works: int = 1) -> int | None:
        named = [WORKLOAD.model_copy(update={"name": f"w{number}"}) for number in range(works)]
        cells = [each.model_copy(update={"workload": work}) for work in named for each in CELLS]
        schedule = Schedule(cells=cells, stopping=rule, seed=1, budget_s=budget_s)
        return schedule.affordable([record(cell, block, 1.0) for block, cell in schedule.trials])

    assert affordable(21.0) == 7
    assert affordable(1.0) == 3, "it ended earlier"
    assert affordable(84.0, works=4) == 3 + 2 * 4, "time of workloads that are decided goes to the others"
    assert affordable(120.0) is None
    assert affordable(None) is None
    assert affordable(21.0, stopping.model_copy(update={"planned_most": 9})) is None
    assert affordable(21.0, stopping.model_copy(update={"until": Until.CLAIMS})) is None
    assert affordable(21.0, StoppingRule(trials=3)) is None

    schedule = Schedule(cells=CELLS, stopping=stopping, seed=1, budget_s=21.0)
    schedule.replan(stopping.model_copy(update={"planned_most": 7}))
    records = [record(cell, block, noise(cell, block, 0.5)) for block, cell in schedule.trials]
    schedule.look(records)
    assert schedule.affordable(records) is None, "there was a look"


def two_figures(
    stopping: StoppingRule, sigma: float, budget_s: float | None = None, ratio: float = 1.0
) -> dict[str, int]:
    """Run a campaign of two stacks; the first figure is equal and has no noise, the second one has ``sigma``, and
    ``ratio`` between the stacks."""
    made = {"tool": "engine", "parameters": {"operation": "small-files", "operations": "create,delete"}}
    cells = [
        each.model_copy(update={"workload": WorkloadSpec(name="files", **made)})
        for each in CELLS
        if each.stack.name != "btrfs"
    ]
    schedule = Schedule(cells=cells, stopping=stopping, seed=1, budget_s=budget_s)
    records: list[TrialRecord] = []
    while len(records) < len(schedule.trials):
        for block, cell in schedule.trials[len(records) :]:
            figures = {"create_rate": noise(cell, block, 1e-4), "delete_rate": noise(cell, -block, sigma)}
            figures["delete_rate"] *= ratio if cell.stack.name == "xfs" else 1.0
            told = {name: Value(value=value, unit=Unit.FILES_PER_SECOND) for name, value in figures.items()}
            records.append(record(cell, block, 1.0).model_copy(update={"metrics": told}))
        schedule.look(records)
    return counts(schedule)


def test_the_other_figures_of_a_workload_get_trials_while_it_can_be_expected_that_they_are_enough() -> None:
    stopping = StoppingRule(trials=5, precision=0.05, max_trials=40)
    assert two_figures(stopping, 0.005)["ext4"] == 5, "both are decided"
    assert 5 < two_figures(stopping, 0.04)["ext4"] < 40, "measured on, and decided"
    assert two_figures(stopping, 2.0)["ext4"] < 40, "given up: thousands of trials would be needed"
    assert two_figures(stopping, 0.04, budget_s=10.0)["ext4"] == 5, "given up: the budget is spent"
    precise = stopping.model_copy(update={"until": Until.PRECISE})
    assert two_figures(stopping, 0.04, ratio=2.0)["ext4"] == 5, "clearly different"
    assert two_figures(precise, 0.04, ratio=2.0)["ext4"] > 5, "clearly different, but not known precisely"


def test_equal_stacks_end_when_they_are_known_to_be_alike() -> None:
    schedule = finished(StoppingRule(trials=5, precision=0.05), lambda c, b: noise(c, b, 0.005))
    assert counts(schedule) == each(5)


def test_for_precision_also_a_clear_winner_is_measured_on() -> None:
    decided = counts(finished(StoppingRule(trials=5, precision=0.02), wide))
    precise = counts(finished(StoppingRule(trials=5, precision=0.02, until=Until.PRECISE), wide))
    assert precise["btrfs"] > decided["btrfs"] == 5


def test_a_campaign_that_was_killed_goes_on_as_it_would_have() -> None:
    stopping = StoppingRule(trials=5, precision=0.01)
    whole = finished(stopping, wide)
    for stored in (0, 3, 15, 16, 20):
        again = finished(stopping, wide, killed_after=stored)
        assert again.trials == whole.trials


def test_a_campaign_that_is_resumed_knows_how_much_was_planned() -> None:
    stopping = StoppingRule(trials=5, precision=0.01)
    whole = finished(stopping, wide)
    assert len(whole.trials) > 3 * 8  # so that there were looks after five and six blocks
    records = [record(cell, block, wide(cell, block)) for block, cell in whole.trials]
    for stored in range(len(records)):
        again = Schedule(cells=CELLS, stopping=stopping, seed=1)
        passed = again.catch_up(records[:stored])
        assert len(again.trials) > stored
        assert again.trials == whole.trials[: len(again.trials)]
        assert (passed is None) == (stored < 15)
    assert again.blocks == whole.blocks


def test_a_stack_that_always_fails_is_not_waited_for() -> None:
    schedule = finished(
        StoppingRule(trials=5, precision=0.05),
        lambda c, b: None if c.stack.name == "btrfs" else wide(c, b),
    )
    assert counts(schedule)["btrfs"] == 5


def test_a_stack_whose_partner_was_given_up_gets_no_trials_for_nothing() -> None:
    """btrfs fails from its fourth trial on. ext4 and xfs are settled, and get no more trials to compare with it."""
    schedule = finished(
        StoppingRule(trials=5, precision=0.05),
        lambda c, b: None if c.stack.name == "btrfs" and b >= 3 else 100.0 * noise(c, b, 0.003),
    )
    assert counts(schedule) == each(5)


def faint(cell: Cell, block: int) -> float:
    """Return values in which xfs is 4 % above ext4 in the first five blocks, then 10 % below it; btrfs is noisy."""
    ahead = 1.04 if block < 5 else 0.9
    if cell.stack.name == "btrfs":
        return 1.02 * noise(cell, block, 0.2)
    return (ahead if cell.stack.name == "xfs" else 1.0) * noise(cell, block, 0.002)


def test_what_was_decided_is_open_again_when_later_trials_speak_against_it() -> None:
    """ext4 and xfs get more trials because btrfs needs them. Their comparison uses all trials and can be open again."""
    stopping = StoppingRule(trials=5, precision=0.01, max_trials=12)
    records = [record(cell, block, faint(cell, block)) for block in range(12) for cell in CELLS]
    schedule = Schedule(cells=CELLS, stopping=stopping, seed=1)

    def about(look: InterimResult | None) -> RepeatedQuestion:
        assert look is not None
        return next(each for each in look.questions if {each.a, each.b} == {"ext4", "xfs"})

    assert about(schedule.look([each for each in records if each.key.block < 5])).settled
    while schedule.blocks < 12:
        last = schedule.look(records)
    last = schedule.look(records)
    assert not about(last).settled
    row = row_of(CELLS, records, looks=looks_of(stopping))
    assert not any(each.holds for each in row.answers)


def test_stacks_of_which_the_kernel_made_the_same_ask_for_no_trials() -> None:
    variants = (CELLS[0].stack.model_copy(update={"mount_options": each}) for each in ("defaults", "discard"))
    cells = tuple(Cell(stack=stack, workload=WORKLOAD) for stack in variants)
    stopping = StoppingRule(trials=5, precision=0.001)
    made = [record(cell, block, 100.0 + block) for block in range(5) for cell in cells]
    assert len(list(questions(cells, made, stopping))) == 1
    effect = Provenance(observed={"options_in_effect": ("rw",)})
    same = [each.model_copy(update={"provenance": effect}) for each in made]
    assert list(questions(cells, same, stopping)) == []


def test_of_many_stacks_a_difference_from_the_best_holds_among_all_pairs() -> None:
    """The correction for multiple comparisons includes all 21 pairs of seven stacks, not only the 6 with the best.

    The best stack is selected with the same trials.
    """
    cells = tuple(
        Cell(stack=StackSpec(name=f"s{number}", medium=RAM, filesystem="xfs"), workload=WORKLOAD)
        for number in range(7)
    )
    stopping = StoppingRule(trials=5, precision=0.001)
    values = {cell.id: 1 + 0.03 * number for number, cell in enumerate(cells)}
    records = [
        record(cell, block, values[cell.id] * noise(cell, block, 0.018))
        for block in range(8)
        for cell in cells
    ]
    asked = list(questions(cells, records, stopping))
    assert len(asked) == 6  # each stack compared with the best
    row = row_of(cells, records, looks=looks_of(stopping))
    held = {frozenset((each.over, each.under)) for each in row.answers if each.holds}
    stacks = {cell.id: cell.stack_id for cell in cells}
    settled = {frozenset(stacks[cell] for cell in each.cells) for each in asked if each.settled}
    assert len(settled) == 5  # if only these six were corrected for, all would be settled
    assert settled <= held


def test_a_difference_that_needs_independent_trials_after_the_correction_is_not_settled() -> None:
    """Five differences with t = 6 and 4 degrees of freedom: p is 0.004, and 0.032 if trials were correlated (t/1.85).

    Of one comparison that is enough; of three (Holm: 3 · 0.032) it is not, so that trials go on.
    """
    logs = (-0.02, -0.01, 0.0, 0.01, 0.02)  # standard error 0.00707
    ext4, xfs, btrfs = CELLS
    values = {
        ext4.id: [exp(6 * 0.00707 + log) for log in logs],
        xfs.id: [1.0] * 5,
        btrfs.id: [exp(-log) for log in logs],
    }
    records = [record(cell, block, values[cell.id][block]) for block in range(5) for cell in CELLS]
    for cells, settled in ((CELLS[:2], True), (CELLS, False)):
        row = row_of(cells, [each for each in records if each.cell in cells], margin=0.001)
        pair = next(each for each in row.answers if {each.over, each.under} == {ext4.stack_id, xfs.stack_id})
        assert pair.holds
        assert pair.fragile is not settled
        assert pair.settled is settled


def test_a_block_keeps_its_order_when_cells_drop_out() -> None:
    schedule = finished(StoppingRule(trials=5, precision=0.01), wide)
    whole = Schedule(cells=CELLS, stopping=StoppingRule(trials=12), seed=1)
    later = [cell.id for block, cell in schedule.trials if block == 6]
    assert later == [cell.id for block, cell in whole.trials if block == 6 and cell.id in later]
    assert len(later) == 2


def test_what_is_not_possible_here_is_never_planned_and_nothing_waits_for_it() -> None:
    xfs = CELLS[1]
    stopping = StoppingRule(trials=4, precision=0.05)
    whole = Schedule(cells=CELLS, stopping=stopping, seed=1)
    schedule = Schedule(cells=CELLS, stopping=stopping, seed=1, without=frozenset({xfs.id}))
    assert len(schedule.trials) == 8
    # The order of the other trials is unchanged.
    assert schedule.trials == [(block, cell) for block, cell in whole.trials if cell != xfs]
    records = [record(cell, block, 100.0 if cell is CELLS[0] else 200.0) for block, cell in schedule.trials]
    seen = known(schedule.look(records))
    assert {name for asked in seen.questions for name in (asked.a, asked.b)} == {"ext4", "btrfs"}
    assert xfs.id not in {cell.id for _, cell in schedule.trials}, "also of what is planned further"


def invalid(of: TrialRecord) -> TrialRecord:
    return of.model_copy(update={"status": Status.INVALID})


def run_with_invalid(
    bad: Callable[[Cell, int], bool],
    *,
    trials: int = 5,
    known: Sequence[TrialRecord] = (),
    most: int | None = None,
) -> tuple[Schedule, list[TrialRecord]]:
    """Run a campaign with a fixed number of trials to its end; trials are invalid where ``bad`` returns True.

    ``known``: trials that are stored already. ``most``: stop as soon as this many are stored.
    """
    records = list(known)
    schedule = Schedule(cells=CELLS, stopping=StoppingRule(trials=trials), seed=1)
    schedule.catch_up(records)
    while True:
        stored = {(each.key.block, each.cell.id) for each in records}
        for block, cell in schedule.trials:
            if (block, cell.id) in stored:
                continue
            if len(records) == most:
                return schedule, records
            made = record(cell, block, 100.0)
            records.append(invalid(made) if bad(cell, block) else made)
        planned = len(schedule.trials)
        schedule.look(records)
        if len(schedule.trials) == planned:
            return schedule, records


def test_invalid_trials_are_replaced_with_those_beside_them() -> None:
    schedule, records = run_with_invalid(lambda c, b: c.stack.name == "xfs" and b in {1, 3})
    assert counts(schedule) == each(7)
    usable = [each for each in records if each.cell.stack.name == "xfs" and each.status is Status.OK]
    assert len(usable) == 5
    assert sum(each.status is Status.INVALID for each in records) == 2  # kept


def test_what_is_always_invalid_is_not_repeated() -> None:
    schedule, _ = run_with_invalid(lambda c, _: c.stack.name == "xfs")
    assert counts(schedule) == each(5)


def test_there_are_at_most_as_many_replacements_as_trials() -> None:
    schedule, _ = run_with_invalid(lambda c, b: c.stack.name == "xfs" and b > 0)
    assert counts(schedule) == each(10)


def test_another_workload_is_not_repeated() -> None:
    others = tuple(
        each.model_copy(update={"workload": WORKLOAD.model_copy(update={"name": "v"})}) for each in CELLS
    )
    schedule = Schedule(cells=(*CELLS, *others), stopping=StoppingRule(trials=5), seed=1)
    records = [record(cell, block, 1.0) for block, cell in schedule.trials]
    records[0] = invalid(records[0])
    schedule.look(records)
    more = [cell.workload.name for block, cell in schedule.trials if block == 5]
    assert more == [records[0].cell.workload.name] * 3


def test_replacements_are_the_same_after_a_crash() -> None:
    def bad(cell: Cell, block: int) -> bool:
        return (cell.stack.name, block) in {("xfs", 1), ("ext4", 1), ("btrfs", 4), ("xfs", 5)}

    whole, _ = run_with_invalid(bad)
    for stored in range(len(whole.trials) + 1):
        _, records = run_with_invalid(bad, most=stored)
        again, _ = run_with_invalid(bad, known=records)
        assert again.trials == whole.trials


def test_a_campaign_with_more_trials_keeps_what_it_has() -> None:
    _, records = run_with_invalid(lambda c, b: c.stack.name == "xfs" and b == 1)
    assert len(records) == 18
    schedule, more = run_with_invalid(lambda _c, _b: False, trials=8, known=records)
    assert counts(schedule) == each(9)
    assert more[:18] == records
