"""Tests of what changes between campaigns: its estimate, intervals of several campaigns, and verdicts by them."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import exp, expm1, log, sqrt
from statistics import variance

import pytest
from tests.made import known
from tests.unit.claimed import (
    HALF,
    OPEN,
    REPLICATED,
    UNKNOWN,
    cell,
    claim,
    known_independent,
    noisy,
    parts,
    steady,
    trials,
)

from fslab.answers.across_campaigns import (
    NO_SPREAD,
    CampaignRatio,
    CampaignSpread,
    Component,
    combined,
    fit,
    over_campaigns,
)
from fslab.answers.ratio import Question, estimate
from fslab.cell import Cell, WorkloadSpec
from fslab.claims.campaign_estimates import Trials, spread_of
from fslab.claims.claim_words import claim_verdict_words
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import ClaimAnswer, OpenReason
from fslab.stats import Interval, Reason
from fslab.stats.estimate_model import no_ratio

__all__ = ["known_independent"]
EXT4, XFS = cell("ext4"), cell("xfs")
CELLS, BLOCKS = 3, 6
RATIO = [("w", 0, 1.0), ("w", 1, -1.0)]


def simulated(
    draw: random.Random, workloads: int, *, change: float = 0.0, shift: float = 0.0, stack: float = 0.0,
    machine: float = 0.0, level: float = 1.0, louder: float = 1.0, campaigns: int = 3,
    blocks: Sequence[int] = (BLOCKS,) * CELLS,
) -> list[list[list[dict[Hashable, dict[int, float]]]]]:  # fmt: skip
    """Return logarithms by workload, figure (one), campaign, cell and block. Blocks shift all cells alike.

    ``louder``: how many times as much the first cell changes. ``blocks``: the number of each cell.
    """
    of_machine = [draw.gauss(0, machine) for _ in range(campaigns)]
    of_stacks = [[draw.gauss(0, stack) for _ in blocks] for _ in range(campaigns)]
    found = []
    for _ in range(workloads):
        levels = [draw.gauss(0, level) for _ in blocks]
        data: list[dict[Hashable, dict[int, float]]] = []
        for campaign in range(campaigns):
            whole = of_machine[campaign] + draw.gauss(0, shift)
            own = [draw.gauss(0, change * (1.0 if number else louder)) for number in range(len(blocks))]
            means = [whole + sum(each) for each in zip(levels, of_stacks[campaign], own, strict=True)]
            of_block = [draw.gauss(0, 0.1) for _ in range(max(blocks))]
            data.append({
                number: {b: mean + of_block[b] + draw.gauss(0, 0.03) for b in range(count)}
                for number, (mean, count) in enumerate(zip(means, blocks, strict=True))
            })  # fmt: skip
        found.append([data])
    return found


@pytest.mark.parametrize(("change", "shift"), [(0.05, 0.2), (0.0, 0.0), (0.2, 0.0), (0.0, 0.2)])
def test_what_changes_in_single_cells_and_workloads_is_found(change: float, shift: float) -> None:
    spread = known(fit(simulated(random.Random(1), 300, change=change, shift=shift)))
    assert sqrt(spread.changes.variance) == pytest.approx(change, rel=0.1, abs=0.01)
    assert sqrt(spread.shifts.variance) == pytest.approx(shift, rel=0.1, abs=0.03)
    assert sqrt(spread.stacks.variance) == pytest.approx(0, abs=0.02)
    assert sqrt(spread.machine.variance) == pytest.approx(0, abs=0.03)
    assert spread.changes.freedom == pytest.approx(299 * 2 * (CELLS - 1))
    assert spread.shifts.freedom == pytest.approx(299 * 2)


def test_what_changes_in_all_cells_of_a_stack_or_of_the_machine_is_found() -> None:
    spread = fit(
        simulated(random.Random(1), 10, stack=0.1, machine=0.3, change=0.02, shift=0.02, campaigns=100)
    )
    assert spread is not None
    assert sqrt(spread.stacks.variance) == pytest.approx(0.1, rel=0.15)
    assert sqrt(spread.machine.variance) == pytest.approx(0.3, rel=0.15)
    assert sqrt(spread.changes.variance) == pytest.approx(0.02, rel=0.15)
    assert spread.stacks.freedom == pytest.approx(99 * (CELLS - 1))
    assert spread.machine.freedom == 99


def test_what_counts_once_in_a_campaign_counts_once_however_many_workloads_there_are() -> None:
    """Two campaigns give one degree of freedom: t(0.975; 1) is 12.7062."""
    once = Component(variance=0.01, freedom=1)
    many = [(workload, stack, sign / 50) for workload in range(50) for stack, sign in ((0, 1.0), (1, -1.0))]
    both = CampaignSpread(stacks=once), CampaignSpread(machine=once)
    expected = [pytest.approx(12.7062 * sqrt(0.02), rel=1e-4), 0.0]
    assert [each.half_width(many, 0.95) for each in both] == expected
    assert both[1].half_width([("w", 0, 1.0)], 0.95) == pytest.approx(1.27062, rel=1e-4)
    own = CampaignSpread(changes=Component(variance=0.01, freedom=1))
    assert own.half_width(many, 0.95) == pytest.approx(12.7062 * sqrt(0.02 / 50), rel=1e-4)


def test_degrees_of_freedom_of_two_components() -> None:
    """Of equal variances with 2 and infinitely many, Satterthwaite's sum has 4 · 2 = 8: t(0.975; 8) is 2.3060."""
    spread = CampaignSpread(changes=Component(variance=0.5), stacks=Component(variance=0.5, freedom=2))
    assert spread.half_width(RATIO, 0.95) == pytest.approx(2.3060 * sqrt(2), rel=1e-4)


def test_a_stack_that_changes_more_than_the_others_counts_by_itself() -> None:
    spread = known(fit(simulated(random.Random(4), 40, change=0.05, louder=3)))
    true = 0.05 * sqrt(9 + 1) * 1.96
    assert spread.half_width(RATIO, 0.95) == pytest.approx(true, rel=0.15)
    quiet = spread.half_width([("w", 1, 1.0), ("w", 2, -1.0)], 0.95)
    assert 0.05 * sqrt(2) * 1.96 < quiet < 0.8 * true


@pytest.mark.parametrize("change", [0.0, 0.05])
def test_cells_with_more_trials_are_compared_where_all_have_one(change: float) -> None:
    """What blocks have in common cancels only there, and noise is that of as many trials."""
    spread = known(fit(simulated(random.Random(5), 300, change=change, shift=0.1, blocks=(24, 24, 4))))
    assert sqrt(spread.changes.variance) == pytest.approx(change, rel=0.1, abs=0.01)


def test_intervals_of_all_runs_cover_the_truth_and_those_of_one_do_not() -> None:
    """Ten workloads whose cells do not differ, except between campaigns."""
    draw, alone, together, tries = random.Random(2), 0, 0, 0
    for _ in range(12):
        data = simulated(draw, 10, change=0.05, shift=0.1, level=0)
        spread = known(fit(data))
        for (campaigns,) in data:
            questions = (Question(over=_figures(one[0]), under=_figures(one[1])) for one in campaigns)
            found = [estimate(each) for each in questions]
            joined = over_campaigns(found, spread, RATIO)
            alone += found[0].differs is True
            together += joined.differs is True
            tries += 1
    assert alone > tries / 3
    assert together < tries / 10


def _figures(logarithms: Mapping[int, float]) -> dict[int, float]:
    return {block: exp(each) for block, each in logarithms.items()}


def ratio_of(ratio: float, factor: float, size: int) -> CampaignRatio:
    interval = Interval(low=ratio / factor, high=ratio * factor, coverage=0.95)
    return CampaignRatio(ratio=ratio, interval=interval, size=size)


def test_a_campaign_weighs_by_its_blocks_unless_campaigns_differ() -> None:
    ends = [ratio_of(1.0, 1.1, 5), ratio_of(2.0, 1.1, 15)]
    ratio, _ = combined(ends, 0.0)
    assert ratio == pytest.approx(2**0.75)
    even, wide = combined(ends, 5.0)
    assert even == pytest.approx(sqrt(2), rel=0.01)
    assert log(wide.high / wide.low) / 2 == pytest.approx(5 / sqrt(2), rel=0.01)


def test_the_weights_and_the_interval_of_unequal_campaigns() -> None:
    """By hand, on logarithms. Half-widths 0.1 and 0.2 from 10 and 5 blocks: one block has a variance of 0.15, so the
    campaigns have 0.015 + 0.01 and 0.03 + 0.01, the shares 40/65 and 25/65, and the mean of 0 and 0.65 is 0.25."""
    ends = [ratio_of(1.0, exp(0.1), 10), ratio_of(exp(0.65), exp(0.2), 5)]
    ratio, interval = combined(ends, 0.1)
    assert log(ratio) == pytest.approx(0.25)
    half = sqrt((40 / 65 * 0.1) ** 2 + (25 / 65 * 0.2) ** 2 + ((40 / 65) ** 2 + (25 / 65) ** 2) * 0.01)
    assert (log(interval.low), log(interval.high)) == pytest.approx((0.25 - half, 0.25 + half))


def test_the_estimate_of_all_campaigns_is_that_of_those_with_an_interval() -> None:
    ends = [ratio_of(1.0, exp(0.1), 10), ratio_of(exp(0.65), exp(0.2), 5)]
    none = no_ratio(1, 1, Reason.TOO_FEW_SAMPLES, 3, 0.95)
    found = [
        replace(
            none, n_a=each.size, n_b=each.size + 1, ratio=each.ratio, interval=each.interval, p_value=0.01
        )
        for each in ends
    ]
    spread = CampaignSpread(machine=Component(variance=0.01), changes=Component(variance=0.02))
    joined = over_campaigns([none, *found], spread, RATIO)
    assert (joined.ratio, joined.interval) == combined(ends, spread.half_width(RATIO, 0.95))
    assert (joined.n_a, joined.n_b, joined.p_value, joined.correlation_known) == (15, 17, None, True)
    assert over_campaigns([none], spread, RATIO) is none


def test_one_campaign_shows_nothing_and_neither_do_few_workloads() -> None:
    draw = random.Random(3)
    data = simulated(draw, 100, change=0.1, shift=0.1)
    assert fit([[campaigns[:1] for campaigns in figures] for figures in data]) is None
    assert fit(data[:2]) is None
    assert spread_of([Trials(records=trials(EXT4, noisy(100.0)))]) is None


def test_a_campaign_with_one_block_does_not_hide_what_the_others_show() -> None:
    draw = random.Random(6)
    cells = [cell(stack, f"w{number}") for number in range(10) for stack in ("ext4", "xfs")]
    finished = [
        Trials(records=[one for each in cells for one in trials(each, noisy(100 * exp(draw.gauss(0, 0.1))))])
        for _ in range(2)
    ]
    begun = Trials(records=[one for each in cells for one in trials(each, [100.0])])
    assert spread_of(finished) is not None
    assert spread_of([begun, *finished]) == spread_of(finished)


def test_a_faster_machine_raises_rates_and_shortens_times() -> None:
    rates = [cell(stack, f"r{number}") for number in range(5) for stack in ("ext4", "xfs")]
    unpack = WorkloadSpec(name="t", tool="untar", parameters={"steps": "walk"})
    times = [
        one.model_copy(update={"workload": unpack.model_copy(update={"name": one.workload.name})})
        for one in rates
    ]
    speeds = (1.0, 1.2, 1.5)
    found = spread_of([
        Trials(records=[
            *(one for each in rates for one in trials(each, noisy(100 * speed))),
            *(one for each in times for one in trials(each, noisy(10 / speed), metric="walk_time")),
        ])
        for speed in speeds
    ])  # fmt: skip
    assert found is not None
    assert found.machine.variance == pytest.approx(variance(map(log, speeds)), rel=0.05)
    assert found.shifts.variance < found.machine.variance / 100


def test_campaigns_are_judged_together_if_they_show_how_much_they_differ() -> None:
    rates = [cell(stack, f"r{number}") for number in range(5) for stack in ("ext4", "xfs")]
    speeds = (1.0, 1.2, 1.5)
    first, *others = (
        Evaluator(trials=Trials(records=[one for each in rates for one in trials(each, noisy(100 * speed))]))
        for speed in speeds
    )
    together = first.over(others)
    assert together.others == others
    between = known(together.between())
    assert between.shifts == pytest.approx(expm1(sqrt(variance(map(log, speeds)))), rel=0.05)
    assert between.changes < 0.01, "the machine changes, and the cells with it"
    assert first.over([]) is first, "one campaign does not show it"
    assert first.between() is None


def campaigns(
    that: str, levels: Sequence[float | None], spread: CampaignSpread | None,
    of: Sequence[Cell] = (EXT4, XFS),
) -> ClaimAnswer:  # fmt: skip
    """Return the answer of campaigns in which XFS has these multiples of ext4's figure; None: it has no trial yet."""
    values = (noisy(100 * level) if level else [] for level in levels)
    records = ([*trials(of[0], steady(100.0)), *trials(of[1], each)] for each in values)
    first, *others = (Evaluator(trials=Trials(records=each)) for each in records)
    found, missing = parts(claim(that), of)
    judge = Evaluator(trials=first.trials, others=others, spread=spread)
    return judge.answer(found, missing)


def spread(change: float) -> CampaignSpread:
    return CampaignSpread(changes=Component(variance=change**2))


@pytest.mark.usefixtures("known_independent")
def test_campaigns_that_contradict_each_other_give_no_verdict() -> None:
    """One campaign says 10 % more, the other 10 % less, each surely: together they say that campaigns differ."""
    alone = campaigns("xfs > ext4", [1.1], NO_SPREAD)
    assert alone.verdict is REPLICATED
    both = campaigns("xfs > ext4", [1.1, 1 / 1.1], spread(log(1.1) * sqrt(2)))
    assert (both.verdict, both.reason) == (OPEN, OpenReason.CAMPAIGNS)
    assert both.more_s is None
    assert claim_verdict_words(both, printed=False) == "open: campaigns differ (another one may decide)"


@pytest.mark.usefixtures("known_independent")
def test_campaigns_that_agree_decide_and_their_interval_has_what_changes() -> None:
    found = campaigns("xfs > ext4", [1.5, 1.5], spread(0.05))
    assert found.verdict is REPLICATED
    (finding,) = found.findings
    assert finding.value == pytest.approx(1.5)
    # Two campaigns: half of the variance of each; the ratio of two cells has twice that of one.
    expected = sqrt(HALF**2 / 2 + (1.959964 * 0.05) ** 2)
    assert log(1.5 / known(finding.low)) == pytest.approx(expected, rel=1e-3)
    assert finding.blocks == 8


@pytest.mark.usefixtures("known_independent")
@pytest.mark.parametrize("levels", [[None, 1.5, 1.5], [1.5, None, 1.5]])
def test_a_campaign_that_has_just_begun_does_not_hide_the_others(levels: Sequence[float | None]) -> None:
    found = campaigns("xfs > ext4", levels, spread(0.05))
    assert found.verdict is REPLICATED
    assert found.findings[0].blocks == 8
    assert campaigns("xfs > ext4", [None], None).verdict is UNKNOWN


def test_several_campaigns_need_not_know_the_autocorrelation() -> None:
    """What trials have in common within a campaign is a part of what changes between campaigns."""
    one = campaigns("xfs / ext4 >= 1.9", [2.0], None)
    two = campaigns("xfs / ext4 >= 1.9", [2.0] * 2, NO_SPREAD)
    assert (one.verdict, one.reason) == (OPEN, OpenReason.INDEPENDENCE)
    assert two.verdict is REPLICATED


@pytest.mark.usefixtures("known_independent")
def test_what_shifts_a_whole_workload_cancels_in_a_ratio_of_its_cells_only() -> None:
    shifting = CampaignSpread(shifts=Component(variance=1.0))
    assert campaigns("xfs > ext4", [1.5], shifting).verdict is REPLICATED
    elsewhere = cell("xfs", "other")
    found = campaigns("xfs on other > ext4 on w", [1.5], shifting, (EXT4, elsewhere))
    assert (found.verdict, found.reason) == (OPEN, OpenReason.CAMPAIGNS)


@pytest.mark.usefixtures("known_independent")
def test_what_changes_the_whole_machine_cancels_in_a_ratio_of_workloads() -> None:
    faster = CampaignSpread(machine=Component(variance=1.0, freedom=1))
    elsewhere = cell("xfs", "other")
    found = campaigns("xfs on other > ext4 on w", [1.5], faster, (EXT4, elsewhere))
    assert found.verdict is REPLICATED
