"""Tests of trend, autocorrelation and changes of level: values calculated by hand, and error rates by simulation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import erfc, nan, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made import known

from fslab.stats import time_series
from fslab.stats.time_series import Autocorrelation, Trend, change_points, midranks, steadiness


def trend(values: Sequence[float], times: Sequence[float] | None = None) -> Trend:
    return known(time_series.trend(values, times))


def autocorrelation(values: Sequence[float]) -> Autocorrelation:
    return known(time_series.autocorrelation(values))


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


@pytest.mark.parametrize("values", [[], [1.0, 2.0, 3.0], [1.0] * 9 + [nan]])
def test_too_little_is_no_answer(values: list[float]) -> None:
    assert (time_series.trend(values), time_series.autocorrelation(values)) == (None, None)


def test_simultaneous_values_have_no_slope() -> None:
    assert time_series.trend([1.0, 2.0, 3.0, 4.0], times=[1.0] * 4) is None


@given(st.lists(st.integers(-50, 50).map(float), min_size=4, max_size=30))
def test_backwards_the_trend_is_the_opposite(values: list[float]) -> None:
    there, back = trend(values), trend(values[::-1])
    assert there.slope == -back.slope
    assert there.p_value == pytest.approx(back.p_value)


def test_eight_rising_values_resemble_each_other() -> None:
    found = autocorrelation([float(value) for value in range(8)])
    # Ranks minus their mean: -3.5 … 3.5. The products of neighbours add up to 26.25, the squares to 42.
    assert found.lag1 == pytest.approx(26.25 / 42)
    assert found.p_value < 0.001


def test_up_and_down_is_the_opposite_of_alike() -> None:
    found = autocorrelation([1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0])
    assert found.lag1 < 0
    assert found.p_value > 0.9


def test_all_equal_is_not_an_answer() -> None:
    assert time_series.autocorrelation([3.0] * 10) is None


def test_independent_values_are_rarely_called_alike_and_others_often() -> None:
    generator, rounds = random.Random(3), 2000
    alarms, found = 0, 0
    for _ in range(rounds):
        noise = [generator.gauss(0, 1) for _ in range(16)]
        alarms += autocorrelation(noise).p_value <= 0.05
        for index in range(1, 16):
            noise[index] += 0.7 * noise[index - 1]
        found += autocorrelation(noise).p_value <= 0.05
    assert alarms / rounds == pytest.approx(0.05, abs=0.015)  # three standard errors
    assert found / rounds > 0.6


def test_trends_are_rarely_seen_where_there_are_none() -> None:
    generator, rounds = random.Random(4), 2000
    alarms = sum(trend([generator.gauss(0, 1) for _ in range(9)]).p_value <= 0.05 for _ in range(rounds))
    assert alarms / rounds <= 0.05 + 0.015


def test_midranks_by_hand() -> None:
    assert midranks([30.0, 10.0, 20.0, 20.0]) == [4.0, 1.0, 2.5, 2.5]


def test_a_step_is_found_where_it_is() -> None:
    values = [100.0, 101.0, 99.0, 102.0, 98.0, 100.5, 112.0, 111.0, 113.0, 110.0, 114.0, 112.5]
    (found,) = change_points(values)
    assert (found.index, found.before, found.after) == (6, 100.25, 112.25)
    assert found.ratio == pytest.approx(112.25 / 100.25)
    # There are C(12, 6) = 924 ways to place the six low ranks. In four of them the statistic is as large as here: the
    # low ranks are the first six, the last six, the middle six, or all but the middle six.
    assert found.p_value == pytest.approx(4 / 924, abs=0.004)


def test_the_same_answer_each_time() -> None:
    generator = random.Random(1)
    values = [generator.gauss(0, 1) + (2 if index > 11 else 0) for index in range(24)]
    assert change_points(values, alpha=0.05) == change_points(values, alpha=0.05)


def test_up_and_down_again() -> None:
    generator = random.Random(2)
    levels = [100.0] * 12 + [120.0] * 12 + [100.0] * 12
    found = change_points([level + generator.gauss(0, 2) for level in levels])
    assert [change.index for change in found] == [12, 24]
    assert [round(change.ratio or 0, 1) for change in found] == [1.2, 0.8]


def test_one_odd_value_is_not_a_change() -> None:
    assert (
        change_points([100.0, 101.0, 99.0, 102.0, 98.0, 900.0, 100.5, 99.5, 101.5, 98.5, 100.2, 99.8]) == ()
    )


def test_too_few_or_no_numbers_are_no_change() -> None:
    assert change_points([]) == ()
    assert change_points([1.0, 1.0, 1.0, 9.0, 9.0]) == ()
    assert change_points([1.0, 1.1, 1.2, 9.0, 9.1, 9.2]) == ()  # p is at least 2/20
    assert change_points([1.0] * 9 + [nan]) == ()


def test_a_change_from_nothing_has_no_ratio() -> None:
    (found,) = change_points([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0])
    assert found.ratio is None


@pytest.mark.parametrize("wrong", [{"least": 0}, {"alpha": 0.0}])
def test_nonsense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="invalid parameters"):
        change_points([1.0] * 10, **wrong)  # type: ignore[arg-type]


def test_few_changes_where_there_are_none() -> None:
    generator, rounds = random.Random(5), 600
    alarms = sum(bool(change_points([generator.gauss(0, 1) for _ in range(20)])) for _ in range(rounds))
    assert alarms / rounds <= 0.01 + 0.012  # three standard errors


def test_a_steady_rate() -> None:
    generator = random.Random(6)
    found = known(steadiness([100 + generator.gauss(0, 3) for _ in range(120)]))
    assert (found.changes, found.largest_shift) == ((), 0.0)


def test_a_rate_that_halves_when_the_buffer_is_full() -> None:
    generator = random.Random(6)
    levels = [100.0] * 40 + [50.0] * 60
    found = known(steadiness([level + generator.gauss(0, 3) for level in levels]))
    # 16 batches of 6 samples, without the first 4 samples. 36 of these 96 samples are before the change: 6 batches.
    assert [change.index for change in found.changes] == [6]
    assert found.largest_shift == pytest.approx(0.5 / 0.5, abs=0.05)  # 50, relative to the median of 50
    assert known(known(found.trend).change) < 0


@pytest.mark.parametrize("values", [[], [1.0] * 31, [nan] * 32])
def test_too_short_a_trial_is_no_answer(values: list[float]) -> None:
    assert steadiness(values) is None
