"""Tests of the schedule of a campaign for claims: open claims get trials, and a resumed campaign plans the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import exp
from typing import Any

import pytest
from tests.made import known
from tests.unit.claimed import cell, claim, trials

from fslab.analysis.further_trials import ClaimsProgress, InterimResult
from fslab.campaign.schedule import Schedule
from fslab.campaign.trial_loop import resume
from fslab.cell import Cell
from fslab.claims.published import Printed
from fslab.claims.schema import Claim
from fslab.cli.progress import look_lines
from fslab.stopping_settings import StoppingRule, Until
from fslab.store.campaign import RunBudget
from fslab.trial_record import Status, TrialRecord

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("ext4", "xfs", "btrfs")
CELLS = tuple(
    cell(name, work, rw=rw) for work, rw in (("w", "randwrite"), ("r", "randread")) for name in NAMES
)
UNTIL = StoppingRule(trials=4, precision=0.02, until=Until.CLAIMS, max_trials=12)
WRITES = {"ext4": 100.0, "xfs": 104.0, "btrfs": 30.0}


def value(of: Cell, block: int) -> float:
    """Return a value with 4 % noise. Writes of ext4 and xfs differ by 4 %; all reads have the same level."""
    middle = WRITES[of.stack.name] if of.workload.name == "w" else 100.0
    return middle * exp(random.Random(f"{of.stack.name}{of.workload.name}{block}").gauss(0, 0.04))


def record(of: Cell, block: int, made: Callable[[Cell, int], float]) -> TrialRecord:
    metric = "write_iops" if of.workload.name == "w" else "read_iops"
    return trials(of, [made(of, block)] * (block + 1), metric)[block]


def planned(*claims: Claim, **more: Any) -> Schedule:
    return Schedule(**{"cells": CELLS, "stopping": UNTIL, "seed": 1, "claims": claims, **more})


def measured(schedule: Schedule, made: Callable[[Cell, int], float] = value) -> list[TrialRecord]:
    """Run the trials of a schedule, and those that its looks add, to the end."""
    records: list[TrialRecord] = []
    while len(records) < len(schedule.trials):
        records += [record(each, block, made) for block, each in schedule.trials[len(records) :]]
        schedule.look(records)
    return records


def of_claims(look: InterimResult | None) -> ClaimsProgress:
    assert look is not None
    return known(look.claims)


def finished(
    *claims: Claim, made: Callable[[Cell, int], float] = value, printed: Printed | None = None
) -> tuple[dict[str, int], InterimResult]:
    """Run a campaign to its end. Return the number of planned trials by cell, and the last interim result."""
    schedule = planned(*claims, printed=printed or {})
    records = measured(schedule, made)
    look = known(schedule.look(records))
    return dict(Counter(f"{each.stack.name} {each.workload.name}" for _, each in schedule.trials)), look


def test_cells_of_no_claim_come_last_with_the_trials_of_the_study() -> None:
    counts, _ = finished(claim("xfs > ext4", on="w"))
    assert counts["xfs w"] == counts["ext4 w"] > 4
    assert {counts[name] for name in counts if name not in {"xfs w", "ext4 w"}} == {4}
    assert counts["xfs w"] >= counts["btrfs w"] + 4, "its partners are measured beside it once more"
    schedule = planned(claim("xfs > ext4", on="w"))
    assert {each.stack.name for _, each in schedule.trials} == {"xfs", "ext4"}


def test_a_claim_whose_figures_are_far_from_the_printed_ones_gets_no_more_trials() -> None:
    """100 IOPS here and 20 there: something else bounds them. With 50 there, they may be compared."""
    ext4 = next(each for each in CELLS if (each.stack.name, each.workload.name) == ("ext4", "w"))
    far, near = (
        finished(claim("xfs > ext4", on="w"), printed={(ext4.id, "write_iops"): (there,)})
        for there in (20.0, 50.0)
    )
    assert [look.claims and look.claims.untestable for _, look in (far, near)] == [1, 0]
    assert far[0]["xfs w"] < near[0]["xfs w"]


def test_all_cells_of_a_workload_are_in_the_blocks_of_one_that_no_claim_is_about() -> None:
    """Otherwise, trials with the same number would be compared that are as far apart as the campaign is long."""
    of = claim("xfs > ext4", on="w")
    schedule = planned(of)
    measured(schedule)
    blocks = {block for block, each in schedule.trials if each.stack.name == "btrfs"}
    assert len(blocks) == 4
    for name in NAMES:
        assert blocks <= {block for block, each in schedule.trials if each.stack.name == name}
    assert len(schedule.trials) == len({(block, each.id) for block, each in schedule.trials})


def test_what_a_resumed_campaign_plans_is_the_same() -> None:
    claims = (claim("xfs > ext4", on="w"), claim("ext4 ~ xfs within 2%", on="r", id="2"))
    whole = planned(*claims, budget_s=60.0)
    records = measured(whole)
    assert 16 < len(whole.trials) <= len(CELLS) * UNTIL.most
    for stored in range(0, len(records), 5):
        again = planned(*claims, budget_s=60.0)
        again.catch_up(records[:stored])
        assert again.trials == whole.trials[: len(again.trials)]
        assert len(again.trials) > stored


def test_the_time_between_trials_is_spent_too() -> None:
    """But not the time until a campaign is resumed. A resumed run has all of its own budget."""
    schedule = planned(claim("xfs > ext4", on="w"), budget_s=100.0)
    records = []
    for number, (block, each) in enumerate(schedule.trials):
        one = record(each, block, value).model_copy(update={"duration_s": 1.0})
        resumed_s = 1800.0 if number >= len(schedule.trials) // 2 else 0.0
        started = BEGIN + timedelta(seconds=1.5 * number + resumed_s)
        records.append(one.model_copy(update={"started": started}))
    assert of_claims(schedule.look(records)).left_s == pytest.approx(100.0 - 1.5 * len(records))
    again = planned(*schedule.claims, budget_s=100.0)
    resume(again, records[:-1], budget_s=60.0)
    assert of_claims(again.look(records)).left_s == pytest.approx(60.0 - 1.5)


def test_a_claim_with_too_few_sound_blocks_gets_more_of_them() -> None:
    """All trials of xfs but the first are invalid, so the ratio is unknown: the claim must not be given up yet."""
    of = claim("xfs > ext4", on="w")
    schedule = planned(of, budget_s=100.0)
    records = [record(each, block, value) for block, each in schedule.trials]
    broken = [
        one.model_copy(update={"status": Status.INVALID})
        if one.cell.stack.name == "xfs" and one.key.block
        else one
        for one in records
    ]
    progress = of_claims(schedule.look(broken))
    assert (progress.open, progress.given_up) == (("1",), ())
    assert len(schedule.trials) > len(records)


def test_a_claim_beyond_the_budget_is_given_up_and_its_time_goes_to_others() -> None:
    """xfs is 8 % faster, and its values scatter by ± 4 %. To show the 8 % to within 0.1 % takes thousands of trials."""

    def turning(of: Cell, block: int) -> float:
        return {"ext4": 100.0, "xfs": 108.0 * exp((0.04 + block / 1e4) * (-1) ** block)}.get(
            of.stack.name, 30.0
        )

    narrow = claim("xfs / ext4 ~ 1.08 within 0.1%", on="w", id="narrow")
    wide = claim("xfs / ext4 > 1", on="w", id="wide")
    stopping = UNTIL.model_copy(update={"max_trials": 200, "planned_most": 20})
    schedule = planned(narrow, wide, stopping=stopping, budget_s=100.0)
    records: list[TrialRecord] = []
    told = []
    while len(records) < len(schedule.trials):
        records += [record(each, block, turning) for block, each in schedule.trials[len(records) :]]
        told.append(of_claims(schedule.look(records)))
    assert "narrow" in told[0].given_up
    assert told[0].open == ("wide",)
    assert "wide" in told[-1].decided
    assert len(records) < 200


def test_what_is_clear_at_once_ends_at_once() -> None:
    counts, look = finished(claim("btrfs is last", on="w"))
    assert set(counts.values()) == {4}
    assert look.open == ()
    assert of_claims(look).decided == ("1",)


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
    beside = {"ext4 r", "xfs r"}  # once more with btrfs, which no claim is about
    assert {name: count for name, count in counts.items() if count != 4} == dict.fromkeys(beside, 8)
    assert look.open == ()


def test_progress_tells_what_is_open() -> None:
    schedule = planned(claim("xfs > ext4", on="w"))
    records = [record(each, block, value) for block, each in schedule.trials]
    look = schedule.analysis.look(records, schedule.blocks)
    lines = list(look_lines(look))
    assert lines[0] == "claims: 0 of 1 decided, 1 open"
    assert lines[1].startswith("    open: claim 1 (w), xfs ")
    assert "ext4, claimed: > 1" in lines[1]


def begins(*budgets_s: float) -> list[RunBudget]:
    """Runs that begin 1000 s after one another."""
    return [
        RunBudget(began=BEGIN + timedelta(seconds=1000 * number), budget_s=budget_s)
        for number, budget_s in enumerate(budgets_s)
    ]


def run(schedule: Schedule, records: list[TrialRecord], *, number: int, until: int = 1000) -> None:
    """Run the planned trials of a schedule up to ``until``, each in a second, as the run with this number."""
    while len(records) < min(until, len(schedule.trials)):
        block, each = schedule.trials[len(records)]
        begun = BEGIN + timedelta(seconds=1000 * number + len(records) + 1)
        records.append(record(each, block, value).model_copy(update={"started": begun}))
        if len(records) == len(schedule.trials):
            schedule.look(records)


@pytest.mark.parametrize("ended", [18, 1000])
def test_each_look_of_a_resumed_campaign_is_repeated_with_the_budget_of_its_run(ended: int) -> None:
    """The second run had a budget of its own, and so has the third. Without that, the third would give up claims that
    the second has measured, and pay for the trials of the second. ``ended``: after how many trials the first run was
    interrupted; 1000: it ended by itself, because it gave up what its budget did not pay for.
    """
    claims = (claim("xfs > ext4", on="w"), claim("ext4 ~ xfs within 2%", on="r", id="2"))
    records: list[TrialRecord] = []
    first = planned(*claims, budget_s=20.0, runs=begins(20.0))
    run(first, records, number=0, until=ended)
    stored = len(records)
    runs = begins(20.0, 60.0)
    second = planned(*claims, budget_s=20.0, runs=runs)
    resume(second, records, budget_s=60.0)
    assert second.trials[:stored] == first.trials[:stored]
    assert len(second.trials) > stored, "its budget pays for more"
    run(second, records, number=1, until=stored + 7)
    runs = begins(20.0, 60.0, 100.0)
    third = planned(*claims, budget_s=20.0, runs=runs)
    resume(third, records, budget_s=100.0)
    assert third.trials[: len(second.trials)] == second.trials
    more = [record(each, block, value) for block, each in third.trials[len(records) :]]
    assert of_claims(third.look(records + more)).left_s == pytest.approx(100.0 - len(more), abs=1.0)
