"""Tests of change points and steadiness: known changes are found at their place, and false ones are rare."""

from __future__ import annotations

import random
from math import nan

import pytest

from fslab.stats import Reason
from fslab.stats.change_points import change_points, steadiness


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
    found = steadiness([100 + generator.gauss(0, 3) for _ in range(120)])
    assert (found.changes, found.largest_shift, found.reason) == ((), 0.0, None)


def test_a_rate_that_halves_when_the_buffer_is_full() -> None:
    generator = random.Random(6)
    levels = [100.0] * 40 + [50.0] * 60
    found = steadiness([level + generator.gauss(0, 3) for level in levels])
    # 16 batches of 6 samples, without the first 4 samples. 36 of these 96 samples are before the change: 6 batches.
    assert [change.index for change in found.changes] == [6]
    assert found.largest_shift == pytest.approx(0.5 / 0.5, abs=0.05)  # 50, relative to the median of 50
    assert found.trend is not None
    assert found.trend.change is not None
    assert found.trend.change < 0


def test_too_short_a_trial_is_an_answer() -> None:
    assert steadiness([1.0] * 31).reason is Reason.TOO_FEW_SAMPLES
    assert steadiness([]).reason is Reason.NO_SAMPLES
    assert steadiness([nan] * 32).reason is Reason.NOT_FINITE
