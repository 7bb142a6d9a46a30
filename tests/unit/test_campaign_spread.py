"""Tests of what changes between campaigns: its estimate, intervals of several campaigns, and verdicts by them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from math import exp, inf, log, sqrt

import pytest
from tests.unit.claimed import HALF, cell, claim, known_independent, noisy, parts, steady, trials

from fslab.answers.campaigns import CampaignSpread, over_campaigns
from fslab.answers.ratio import Question, estimate
from fslab.cell import Cell
from fslab.claims.campaigns import spread_of
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import ClaimAnswer, ClaimVerdict, OpenReason
from fslab.claims.trials import Trials
from fslab.claims.verdict_words import claim_verdict_words
from fslab.stats.campaign_spread import NO_SPREAD, CampaignRatio, Component, combined, fit
from fslab.stats.interval import Interval

__all__ = ["known_independent"]
EXT4, XFS = cell("ext4"), cell("xfs")
CAMPAIGNS, CELLS, BLOCKS = 3, 3, 6


def simulated(
    draw: random.Random, workloads: int, *, change: float, shift: float, level: float = 1.0
) -> list[list[list[list[dict[int, float]]]]]:
    """Return logarithms by workload, figure (one), campaign, cell and block. Blocks shift all cells alike."""
    found = []
    for _ in range(workloads):
        levels = [draw.gauss(0, level) for _ in range(CELLS)]
        campaigns = []
        for _ in range(CAMPAIGNS):
            of_campaign = draw.gauss(0, shift)
            means = [each + of_campaign + draw.gauss(0, change) for each in levels]
            blocks = [draw.gauss(0, 0.1) for _ in range(BLOCKS)]
            campaigns.append(
                [{b: mean + blocks[b] + draw.gauss(0, 0.03) for b in range(BLOCKS)} for mean in means]
            )
        found.append([campaigns])
    return found


@pytest.mark.parametrize(("change", "shift"), [(0.05, 0.2), (0.0, 0.0), (0.2, 0.0), (0.0, 0.2)])
def test_both_components_are_found(change: float, shift: float) -> None:
    spread = fit(simulated(random.Random(1), 300, change=change, shift=shift))
    assert spread is not None
    assert sqrt(spread.changes.variance) == pytest.approx(change, rel=0.1, abs=0.01)
    assert sqrt(spread.shifts.variance) == pytest.approx(shift, rel=0.1, abs=0.03)
    assert spread.changes.freedom == pytest.approx(300 * (CAMPAIGNS - 1) * (CELLS - 1))
    assert spread.shifts.freedom == pytest.approx(300 * (CAMPAIGNS - 1))


def test_intervals_of_all_runs_cover_the_truth_and_those_of_one_do_not() -> None:
    """Ten workloads whose cells do not differ, except between campaigns."""
    draw, alone, together, tries = random.Random(2), 0, 0, 0
    for _ in range(12):
        data = simulated(draw, 10, change=0.05, shift=0.1, level=0)
        spread = fit(data)
        assert spread is not None
        for (campaigns,) in data:
            found = [
                estimate(Question(over=_figures(campaign[0]), under=_figures(campaign[1])))
                for campaign in campaigns
            ]
            joined = over_campaigns(found, spread, [[1.0, -1.0]])
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


def test_one_campaign_shows_nothing_and_neither_do_few_workloads() -> None:
    draw = random.Random(3)
    data = simulated(draw, 100, change=0.1, shift=0.1)
    assert fit([[campaigns[:1] for campaigns in figures] for figures in data]) is None
    assert fit(data[:3]) is None
    assert spread_of([Trials(records=trials(EXT4, noisy(100.0)))]) is None


def campaigns(
    that: str, levels: Sequence[float | None], spread: CampaignSpread | None,
    of: Sequence[Cell] = (EXT4, XFS),
) -> ClaimAnswer:  # fmt: skip
    """Return the answer of campaigns in which XFS has these multiples of ext4's figure; None: it has no trial yet."""
    evaluators = [
        Evaluator(
            trials=Trials(
                records=[*trials(of[0], steady(100.0)), *trials(of[1], noisy(100 * level) if level else [])]
            )
        )
        for level in levels
    ]
    first, *others = evaluators
    found, missing = parts(claim(that), of)
    judge = Evaluator(trials=first.trials, others=others, spread=spread)
    return judge.answer(found, missing)


def spread(change: float) -> CampaignSpread:
    return CampaignSpread(
        changes=Component(variance=change**2, freedom=inf), shifts=Component(variance=0.0, freedom=inf)
    )


@pytest.mark.usefixtures("known_independent")
def test_campaigns_that_contradict_each_other_give_no_verdict() -> None:
    """One campaign says 10 % more, the other 10 % less, each surely: together they say that campaigns differ."""
    alone = campaigns("xfs > ext4", [1.1], NO_SPREAD)
    assert alone.verdict is ClaimVerdict.REPLICATED
    both = campaigns("xfs > ext4", [1.1, 1 / 1.1], spread(log(1.1) * sqrt(2)))
    assert (both.verdict, both.reason) == (ClaimVerdict.OPEN, OpenReason.CAMPAIGNS)
    assert both.more_s is None
    assert claim_verdict_words(both, printed=False) == "open: campaigns differ (another one may decide)"


@pytest.mark.usefixtures("known_independent")
def test_campaigns_that_agree_decide_and_their_interval_has_what_changes() -> None:
    found = campaigns("xfs > ext4", [1.5, 1.5], spread(0.05))
    assert found.verdict is ClaimVerdict.REPLICATED
    (finding,) = found.findings
    assert finding.value == pytest.approx(1.5)
    assert finding.low is not None
    # Two campaigns: half of the variance of each; the ratio of two cells has twice that of one.
    expected = sqrt(HALF**2 / 2 + (1.959964 * 0.05) ** 2)
    assert log(1.5 / finding.low) == pytest.approx(expected, rel=1e-3)
    assert finding.blocks == 8


@pytest.mark.usefixtures("known_independent")
@pytest.mark.parametrize("levels", [[None, 1.5, 1.5], [1.5, None, 1.5]])
def test_a_campaign_that_has_just_begun_does_not_hide_the_others(levels: Sequence[float | None]) -> None:
    found = campaigns("xfs > ext4", levels, spread(0.05))
    assert found.verdict is ClaimVerdict.REPLICATED
    assert found.findings[0].blocks == 8
    assert campaigns("xfs > ext4", [None], None).verdict is ClaimVerdict.UNKNOWN


def test_several_campaigns_need_not_know_the_autocorrelation() -> None:
    """What trials have in common within a campaign is a part of what changes between campaigns."""
    one = campaigns("xfs / ext4 >= 1.9", [2.0], None)
    two = campaigns("xfs / ext4 >= 1.9", [2.0] * 2, NO_SPREAD)
    assert (one.verdict, one.reason) == (ClaimVerdict.OPEN, OpenReason.INDEPENDENCE)
    assert two.verdict is ClaimVerdict.REPLICATED


@pytest.mark.usefixtures("known_independent")
def test_what_shifts_a_whole_workload_cancels_in_a_ratio_of_its_cells_only() -> None:
    shifting = CampaignSpread(
        changes=Component(variance=0.0, freedom=inf), shifts=Component(variance=1.0, freedom=inf)
    )
    assert campaigns("xfs > ext4", [1.5], shifting).verdict is ClaimVerdict.REPLICATED
    elsewhere = cell("xfs", "other")
    found = campaigns("xfs on other > ext4 on w", [1.5], shifting, (EXT4, elsewhere))
    assert (found.verdict, found.reason) == (ClaimVerdict.OPEN, OpenReason.CAMPAIGNS)
