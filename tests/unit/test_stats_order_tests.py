"""Tests of trend and autocorrelation: values calculated by hand, and error rates by simulation."""

from __future__ import annotations

import random
from math import erfc, nan, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fslab.stats import Reason
from fslab.stats.trial_order_tests import autocorrelation, midranks, trend


def test_five_rising_values() -> None:
    found = trend([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.p_value == pytest.approx(2 / 120)  # of 5! orders, one rises and one falls
    assert found.slope == 1.0
    assert found.change == pytest.approx(4 / 3)


def test_one_inversion() -> None:
    # Of 5! orders, 1 has no inversion and 4 have one.
    assert trend([1.0, 2.0, 3.0, 5.0, 4.0]).p_value == pytest.approx(2 * 5 / 120)


def test_ties_by_hand() -> None:
    # Score 4; variance (4·3·13 - 2·2·1·9)/18 = 120/18. The continuity correction subtracts 1 from the score.
    found = trend([1.0, 1.0, 2.0, 2.0])
    assert found.p_value == pytest.approx(erfc(3 / sqrt(120 / 18) / sqrt(2)))
    assert found.slope == pytest.approx((1 / 3 + 1 / 2) / 2)  # slopes 0, 0, 1/3, 1/2, 1/2, 1


def test_one_odd_value_makes_no_slope() -> None:
    found = trend([10.0, 11.0, 500.0, 13.0, 14.0, 15.0, 16.0])
    assert found.slope == pytest.approx(1.0)


def test_times_count_and_may_come_in_any_order() -> None:
    found = trend([10.0, 40.0, 20.0, 30.0], times=[0.0, 30.0, 10.0, 20.0])
    assert found.slope == pytest.approx(1.0)
    assert found.change == pytest.approx(30 / 25)


def test_all_equal_is_not_a_trend() -> None:
    assert trend([5.0] * 6).p_value == 1.0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], Reason.NO_SAMPLES),
        ([1.0, 2.0, 3.0], Reason.TOO_FEW_SAMPLES),
        ([1.0] * 9 + [nan], Reason.NOT_FINITE),
    ],
)
def test_too_little_is_an_answer(values: list[float], reason: Reason) -> None:
    assert (trend(values).reason, trend(values).p_value) == (reason, None)
    assert (autocorrelation(values).reason, autocorrelation(values).p_value) == (reason, None)


def test_simultaneous_values_have_no_slope() -> None:
    assert trend([1.0, 2.0, 3.0, 4.0], times=[1.0] * 4).reason is Reason.TOO_FEW_SAMPLES


@given(st.lists(st.integers(-50, 50).map(float), min_size=4, max_size=30))
def test_backwards_the_trend_is_the_opposite(values: list[float]) -> None:
    there, back = trend(values), trend(values[::-1])
    assert there.slope is not None
    assert there.slope == -(back.slope or 0.0)
    assert there.p_value == pytest.approx(back.p_value)


def test_eight_rising_values_resemble_each_other() -> None:
    found = autocorrelation([float(value) for value in range(8)])
    # Ranks minus their mean: -3.5 … 3.5. The products of neighbours add up to 26.25, the squares to 42.
    assert found.lag1 == pytest.approx(26.25 / 42)
    assert found.p_value is not None
    assert found.p_value < 0.001


def test_up_and_down_is_the_opposite_of_alike() -> None:
    found = autocorrelation([1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0])
    assert found.lag1 is not None
    assert found.p_value is not None
    assert found.lag1 < 0
    assert found.p_value > 0.9


def test_all_equal_is_not_an_answer() -> None:
    assert autocorrelation([3.0] * 10).reason is Reason.TOO_FEW_SAMPLES


def test_independent_values_are_rarely_called_alike_and_others_often() -> None:
    generator, rounds = random.Random(3), 2000
    alarms, found = 0, 0
    for _ in range(rounds):
        noise = [generator.gauss(0, 1) for _ in range(16)]
        alarms += (autocorrelation(noise).p_value or 0) <= 0.05
        for index in range(1, 16):
            noise[index] += 0.7 * noise[index - 1]
        found += (autocorrelation(noise).p_value or 0) <= 0.05
    assert alarms / rounds == pytest.approx(0.05, abs=0.015)  # three standard errors
    assert found / rounds > 0.6


def test_trends_are_rarely_seen_where_there_are_none() -> None:
    generator, rounds = random.Random(4), 2000
    alarms = sum(
        (trend([generator.gauss(0, 1) for _ in range(9)]).p_value or 0) <= 0.05 for _ in range(rounds)
    )
    assert alarms / rounds <= 0.05 + 0.015


def test_midranks_by_hand() -> None:
    assert midranks([30.0, 10.0, 20.0, 20.0]) == [4.0, 1.0, 2.5, 2.5]
