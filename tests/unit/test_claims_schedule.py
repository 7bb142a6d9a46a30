"""Trials are spent where claims are open, also after a crash, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import exp

from tests.unit.claimed import cell, claim, trials

from fslab.analysis.interim import InterimResult
from fslab.campaign.schedule import Schedule
from fslab.cell import Cell
from fslab.claims.schema import Claim
from fslab.cli.progress import look_lines
from fslab.record import TrialRecord
from fslab.stopping import StoppingRule, Until

NAMES = ("ext4", "xfs", "btrfs")
CELLS = tuple(
    cell(name, work, rw=rw) for work, rw in (("w", "randwrite"), ("r", "randread")) for name in NAMES
)
UNTIL = StoppingRule(trials=4, precision=0.02, until=Until.CLAIMS, max_trials=12)
WRITES = {"ext4": 100.0, "xfs": 104.0, "btrfs": 30.0}


def value(of: Cell, block: int) -> float:
    """ext4 and xfs are 4 % apart, with 4 % of noise; reads are all alike."""
    middle = WRITES[of.stack.name] if of.workload.name == "w" else 100.0
    return middle * exp(random.Random(f"{of.stack.name}{of.workload.name}{block}").gauss(0, 0.04))


def record(of: Cell, block: int, made: Callable[[Cell, int], float]) -> TrialRecord:
    metric = "write_iops" if of.workload.name == "w" else "read_iops"
    return trials(of, [made(of, block)] * (block + 1), metric)[block]


def finished(
    *claims: Claim, made: Callable[[Cell, int], float] = value
) -> tuple[dict[str, int], InterimResult]:
    """How many trials each cell got, and the last look."""
    schedule = Schedule(cells=CELLS, stopping=UNTIL, seed=1, claims=claims)
    records: dict[tuple[str, int], TrialRecord] = {}
    while True:
        for block, each in schedule.trials:
            records.setdefault((each.id, block), record(each, block, made))
        planned = len(schedule.trials)
        look = schedule.look(list(records.values()))
        assert look is not None
        if len(schedule.trials) == planned:
            break
    counts = {f"{each.stack.name} {each.workload.name}": 0 for each in CELLS}
    for _, each in schedule.trials:
        counts[f"{each.stack.name} {each.workload.name}"] += 1
    return counts, look


def test_cells_of_no_claim_get_no_more_than_the_first_trials() -> None:
    counts, _ = finished(claim("xfs > ext4", on="w"))
    assert counts["xfs w"] == counts["ext4 w"] > 4
    assert {counts[name] for name in counts if name not in {"xfs w", "ext4 w"}} == {4}


def test_what_is_clear_at_once_ends_at_once() -> None:
    counts, look = finished(claim("btrfs is last", on="w"))
    assert set(counts.values()) == {4}
    assert look.open == ()


def test_a_contradicted_claim_gets_no_more_trials_for_its_other_parts() -> None:
    counts, look = finished(claim("btrfs > ext4", "xfs > ext4", on="w"))
    assert set(counts.values()) == {4}
    assert look.open == ()


def test_one_claim_may_be_open_while_another_is_not() -> None:
    _, look = finished(claim("btrfs is last", on="w"), claim("xfs / ext4 >= 1.04", on="w", id="2"))
    assert {question.claim for question in look.questions} == {"1", "2"}
    assert {question.claim for question in look.open} <= {"2"}


def test_what_is_nearer_to_a_limit_than_the_precision_is_left() -> None:
    def quiet(of: Cell, block: int) -> float:
        return 100.0 * exp(random.Random(f"{of.stack.name}{of.workload.name}{block}").gauss(0, 0.001))

    counts, look = finished(claim("xfs > ext4", on="r"), made=quiet)
    assert set(counts.values()) == {4}
    assert look.open == ()


def test_progress_tells_what_is_open() -> None:
    schedule = Schedule(cells=CELLS, stopping=UNTIL, seed=1, claims=(claim("xfs > ext4", on="w"),))
    records = [record(each, block, value) for block, each in schedule.trials]
    look = schedule.analysis.look(records, schedule.blocks)
    lines = list(look_lines(look))
    assert lines[0] == "after 4 trials each: 0 of 1 comparisons settled, 1 of 1 claims open"
    assert lines[1].startswith("    open: claim 1 (w), xfs ")
    assert "ext4, to be > 1" in lines[1]
