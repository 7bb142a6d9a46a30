"""Tests of when comparisons are settled, and of which comparisons need more trials."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import exp, log
from random import Random

import pytest
from scipy.stats import t
from tests.made import known

from fslab.answers.model import Answer
from fslab.answers.ratio import Question, answer, size_until
from fslab.stats import Interval, Reason
from fslab.stats.comparison_settled import (
    Goal,
    further_blocks,
    is_precise,
    is_settled,
    size_for,
    trials_to_detect,
)
from fslab.stats.estimate_model import CORRELATED, ComparisonMethod, RatioEstimate
from fslab.stats.interim_looks import Looks
from fslab.units import Direction


def estimate(low: float, high: float, *, p_value: float = 0.5, n: int = 10) -> RatioEstimate:
    return RatioEstimate(
        n_a=n, n_b=n, ratio=(low * high) ** 0.5, interval=Interval(low=low, high=high, coverage=0.95),
        p_value=p_value, reason=None, needed=4, method=ComparisonMethod.PAIRED_T,
    )  # fmt: skip


def nothing(reason: Reason) -> RatioEstimate:
    return RatioEstimate(n_a=2, n_b=2, ratio=None, interval=None, p_value=None, reason=reason, needed=4)


def reaches(one: RatioEstimate, goal: Goal = Goal.DECIDED, holds: bool | None = None) -> bool:
    return is_settled(one, one.differs is True if holds is None else holds, goal=goal, precision=0.05)


@pytest.mark.parametrize(
    ("low", "high", "decided", "precise"),
    [
        (1.01, 1.30, True, False),
        (0.70, 0.99, True, False),
        (0.97, 1.04, True, True),
        (0.953, 1.049, True, True),  # 1/1.05 is 0.952: equivalent
        (0.99, 1.08, False, True),  # log(1.08/0.99)/2 is 0.0435, log 1.05 is 0.0488
        (0.99, 1.10, False, False),  # log(1.10/0.99)/2 is 0.0527
        (1.0, 1.2, False, False),  # the interval contains 1
    ],
)
def test_goals(low: float, high: float, decided: bool, precise: bool) -> None:
    found = estimate(low, high, n=20)
    assert (reaches(found), reaches(found, Goal.PRECISE)) == (decided, precise)


def test_without_an_interval_it_is_not_precise() -> None:
    assert not is_precise(nothing(Reason.TOO_FEW_SAMPLES), precision=0.05)


def test_a_difference_counts_when_it_holds_together_with_the_others() -> None:
    faint = estimate(1.01, 1.5, p_value=0.04, n=20)
    assert reaches(faint)
    assert not reaches(faint, holds=False)
    assert reaches(estimate(0.98, 1.02, p_value=0.9), holds=False)  # equivalent


def test_below_twenty_blocks_a_difference_must_hold_were_trials_alike() -> None:
    # log 1.5 = 0.405 and log 1.2 = 0.182: 0.294 ± 0.112, and 1.85 times as wide ± 0.207, which still excludes 0
    clear = estimate(1.2, 1.5, p_value=0.001, n=5)
    # 0.208 ± 0.198, and 1.85 times as wide ± 0.366, which contains 0
    faint = estimate(1.01, 1.5, p_value=0.04, n=19)
    assert not clear.rests_on_independence
    assert faint.rests_on_independence
    assert faint.differs
    assert reaches(clear)
    assert not reaches(faint)
    assert further_blocks(faint, precision=0.05, goal=Goal.DECIDED, looks=Looks(first=5)) == 20 - 19
    # Of ten, t/√n = 0.715. 1.85 times 0.198 becomes 0.208 for 0.405, at 26: but 20 blocks show whether they resemble.
    assert further_blocks(replace(faint, n_a=10, n_b=10), precision=0.05, goal=Goal.DECIDED) == 20 - 10
    # An interval that is already so much wider is not widened again.
    assert not replace(faint, widening=CORRELATED).rests_on_independence


def test_twenty_blocks_know_whether_trials_are_alike() -> None:
    faint = estimate(1.01, 1.5, p_value=0.04, n=20)
    assert not faint.rests_on_independence
    assert reaches(faint)


def test_what_does_not_differ_rests_on_nothing() -> None:
    assert not estimate(0.9, 1.5, n=5).rests_on_independence
    assert not nothing(Reason.TOO_FEW_SAMPLES).rests_on_independence


def test_precise_asks_for_every_width() -> None:
    wide, narrow = estimate(1.2, 1.5, p_value=0.001), estimate(1.20, 1.29, p_value=0.001)
    assert [reaches(each, Goal.PRECISE) for each in (wide, narrow)] == [False, True]


@pytest.mark.parametrize("goal", Goal)
def test_what_has_no_ratio_does_not_ask_for_more(goal: Goal) -> None:
    reasons = (Reason.NOT_POSITIVE, Reason.NOT_FINITE, Reason.NO_SAMPLES, Reason.TOO_FEW_SAMPLES)
    assert [reaches(nothing(reason), goal) for reason in reasons] == [True, True, False, False]


def test_half_the_width_takes_nearly_four_times_the_blocks() -> None:
    # Half-width 0.1 with 10 values; t of 9 is 2.2622. Half of that width needs t/√n of at most 2.2622/√10/2 = 0.35768.
    # 33 values: 2.0369/√33 = 0.35458. 32 values: 2.0395/√32 = 0.36054, too wide.
    wide = estimate(1 / 1.1051709, 1.1051709)
    assert wide.half_width == pytest.approx(0.1)
    assert further_blocks(wide, precision=0.0512711) == 33 - 10
    assert further_blocks(wide, precision=0.0512711, looks=Looks(first=5)) == 40 - 10
    assert further_blocks(wide, precision=0.2) == 0
    assert size_for(0.05, 0.1, 10, coverage=0.95) == 33
    # With the noise of many other cells, t is the same for both: 10·(0.1/0.0501)² is 39.8.
    assert size_for(0.0501, 0.1, 10, coverage=0.95, borrowed=1e6) == 40


def test_what_is_clearly_apart_takes_less_to_decide_than_to_measure() -> None:
    apart = estimate(0.98, 1.3, n=6)  # ratio 1.129: logarithm 0.121, half-width 0.141
    decided = further_blocks(apart, precision=0.02, goal=Goal.DECIDED)
    precise = known(further_blocks(apart, precision=0.02))
    assert decided is not None
    assert 0 < decided <= 4 < precise
    assert further_blocks(estimate(1.1, 1.3), precision=0.02, goal=Goal.DECIDED) == 0


def test_what_cannot_be_told_is_unknown() -> None:
    assert further_blocks(nothing(Reason.TOO_FEW_SAMPLES), precision=0.05) is None
    assert further_blocks(estimate(0.5, 2.0), precision=1e-6) is None  # more than a million blocks


def test_half_width_is_that_of_the_logarithm() -> None:
    assert estimate(0.5, 2.0).half_width == pytest.approx(log(2))


def test_what_noise_costs_is_known_from_normal_theory() -> None:
    """2·(2.8·0.16/log 1.1)² + 1 = 45.2. The minimum is three trials."""
    assert trials_to_detect(0.1, 0.16) == 45
    assert trials_to_detect(0.1, 0.03) == 3


@pytest.mark.parametrize("goal", Goal)
def test_what_is_settled_needs_no_more_trials_and_what_is_open_some(goal: Goal) -> None:
    """Also in a family: equivalence is not corrected for it; a difference that holds in it can rest on independence."""
    draw = Random(4)
    seen = set()
    for _ in range(60):
        cells = [{block: exp(draw.gauss(0.04 * cell, 0.05)) for block in range(6)} for cell in range(4)]
        for found in answer([Question(over=a, under=b) for a, b in combinations(cells, 2)], goal=goal):
            assert found.further is not None
            assert found.settled == (found.further == 0), found
            seen.add((found.verdict, found.settled))
    assert len(seen) > 3


def test_a_forecast_in_seconds_is_that_of_the_blocks() -> None:
    over, under = ({block: exp(0.2 * ((7 * block + shift) % 5)) for block in range(6)} for shift in (0, 3))
    (found,) = answer([Question(over=over, under=under, block_s=2.5)])
    assert found.further_s == 2.5 * known(found.further)


def test_a_question_without_a_test_is_no_part_of_the_family() -> None:
    a, b = ({block: level + 0.01 * (block % 3) for block in range(6)} for level in (1.0, 2.0))
    tested, untested = answer([
        Question(over=a, under=b, names=("a", "b"), family="row"),
        Question(over=a, under=dict.fromkeys(a, 0.0), names=("a", "c"), family="row"),
    ])  # fmt: skip
    assert (tested.holds, tested.p_family) == (True, tested.p_value)
    assert (untested.holds, untested.p_family, untested.p_value) == (None, None, None)


@pytest.mark.parametrize(
    ("blocks", "noise", "bound", "wide"),
    [(5, 0.11, 1.08, False), (5, 0.11, 1.3, True), (20, 0.2, 1.06, False)],
)
def test_an_interval_ends_before_a_bound_when_student_s_t_does(
    blocks: int, noise: float, bound: float, wide: bool
) -> None:
    """Below 20 blocks, the interval for trials that resemble the ones before must do so, or there must be 20."""
    values = {block: exp(0.02 + noise * ((2 * block) % 5 - 2)) for block in range(blocks)}
    (found,) = answer([Question(over=values, under=dict.fromkeys(values, 1.0))])
    now = known(found.interval_if_correlated if wide else found.interval)

    def half(size: int) -> float:
        return float(t.ppf(0.5 + now.coverage / 2, size - 1) / size**0.5)

    distance = log(bound / known(found.ratio)) / (log(now.high / now.low) / 2) * half(blocks)
    size = next(size for size in range(blocks + 1, 10_000) if half(size) <= distance)
    assert size < 20 if wide else size > 21
    assert size_until(found, bound) == size


@pytest.mark.parametrize("counts", [False, True])
def test_the_answer_turned_is_that_of_the_question_turned(counts: bool) -> None:
    over, under = ({block: (7 * block + shift) % 5 + 1.0 for block in range(6)} for shift in (0, 3))
    if counts:
        over[2] = 0.0
    question = Question(over=over, under=under, names=("a", "b"), counts=counts, better=Direction.LOWER)
    turned = replace(question, over=under, under=over, names=("b", "a"))
    (found,), (other,) = answer([question]), answer([turned])
    assert (
        (found.interval_if_correlated is None) is (found.ratio is None) is (found.more is not None) is counts
    )
    assert numbers(found.inverted()) == pytest.approx(numbers(other))
    assert found.inverted().inverted().winner == found.winner == other.winner


def numbers(found: Answer) -> list[float]:
    intervals = (found.interval, found.interval_if_correlated, found.more_interval)
    ends = [end for each in intervals if each for end in (each.low, each.high)]
    return [*ends, *(each for each in (found.ratio, found.more, found.of_medians) if each is not None)]
