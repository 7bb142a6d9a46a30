"""Tests of Student's t, the beta distribution and signed ranks: closed forms, published tables, enumeration."""

from __future__ import annotations

from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr

from fslab.stats.difference_interval import signed_rank_interval, signed_rank_p, walsh_averages
from fslab.stats.distributions import (
    beta_tail,
    lower_tails,
    mean_and_error,
    signed_rank_cut,
    two_sided_quantile,
)


# Two-sided probability, degrees of freedom and quantile, from published tables of t.
@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [(0.05, 4, 2.776), (0.05, 9, 2.262), (0.01, 4, 4.604), (0.01, 9, 3.250), (0.001, 3, 12.924), (0.05, 1, 12.706)],
)  # fmt: skip
def test_quantiles_of_the_printed_table(probability: float, freedom: int, value: float) -> None:
    assert two_sided_quantile(probability, freedom) == pytest.approx(value, abs=5e-4)


@given(st.floats(min_value=1e-9, max_value=1.0), st.integers(min_value=1, max_value=200))
def test_quantile_inverts_the_tail(probability: float, freedom: int) -> None:
    tail = 2 * stdtr(freedom, -two_sided_quantile(probability, freedom))
    assert tail == pytest.approx(probability)


def test_many_degrees_of_freedom_are_the_normal_distribution() -> None:
    assert two_sided_quantile(0.05, 1_000_000) == pytest.approx(1.959966, abs=1e-5)


@pytest.mark.parametrize("probability", [0.0, -0.1, 1.1])
def test_invalid_probabilities_are_refused(probability: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        two_sided_quantile(probability, 3)


def test_beta_by_hand() -> None:
    assert beta_tail(1, 1, 0.3) == pytest.approx(0.3)  # uniform
    assert beta_tail(2, 1, 0.3) == pytest.approx(0.09)  # the larger of two uniform values
    assert beta_tail(5, 5, 0.5) == pytest.approx(0.5)  # symmetric


def test_mean_and_error_by_hand() -> None:
    # Deviations -1, 0, 1: s² = 2/2, and the standard error is s/√3.
    assert mean_and_error([1.0, 2.0, 3.0]) == pytest.approx((2.0, 1 / sqrt(3)))
    assert mean_and_error([4.0]) == (4.0, inf)


# Hollander & Wolfe 1999, table 3.1 (Hamilton depression scale before and after tranquilizer therapy). Their results:
# T+ = 40, one-sided p 0.0195 (so 0.0391 two-sided), estimate 0.46, 96.1 % interval 0.010 … 0.786.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]

DIFFERENCES = st.lists(st.integers(min_value=-50, max_value=50).map(float), min_size=6, max_size=14)


def test_published_example_of_hollander_and_wolfe() -> None:
    sample = np.array([BEFORE]) - np.array([AFTER])
    center, low, high, coverage = signed_rank_interval(sample, 0.95)
    assert signed_rank_p(sample)[0] == pytest.approx(0.0391, abs=5e-5)
    assert center[0] == pytest.approx(0.46, abs=1e-9)
    assert (low[0], high[0]) == pytest.approx((0.010, 0.786))
    assert coverage == pytest.approx(0.961, abs=5e-4)


# The largest T that is significant at 5 % two-sided (published tables, such as Siegel & Castellan 1988, table H).
@pytest.mark.parametrize(
    ("size", "critical"), [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (15, 25), (20, 52), (25, 89)]
)
def test_critical_values_of_the_printed_table(size: int, critical: int) -> None:
    assert signed_rank_cut(size, 0.95) == critical + 1


def test_distribution_is_that_of_all_signs() -> None:
    sums = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product([0, 1], repeat=5)]
    assert lower_tails(5) == pytest.approx(
        [sum(each <= value for each in sums) / 32 for value in range(16)], rel=1e-12
    )


def test_far_tails_keep_their_accuracy() -> None:
    # Of 2^300 combinations of signs, one each has T = 0, 1 and 2, and two have T = 3.
    assert lower_tails(300)[:4] == pytest.approx([1 / 2**300, 2 / 2**300, 3 / 2**300, 5 / 2**300], rel=1e-12)


def test_five_differences_are_too_few_for_95_percent() -> None:
    assert signed_rank_cut(5, 0.95) == 0  # 1 - 2/32


def test_walsh_averages_by_hand() -> None:
    assert sorted(walsh_averages(np.array([[1.0, 4.0, 2.0]]))[0]) == [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]


@given(DIFFERENCES, st.sampled_from([0.8, 0.95]))
def test_interval_and_test_agree_and_the_centre_lies_inside(
    differences: list[float], coverage: float
) -> None:
    sample = np.array([differences])
    center, low, high, achieved = signed_rank_interval(sample, coverage)
    assert low[0] <= center[0] <= high[0]
    assert achieved >= coverage
    assert (low[0] > 0 or high[0] < 0) == (signed_rank_p(sample)[0] <= 1 - coverage + 1e-12)


@given(DIFFERENCES)
def test_the_other_way_round_everything_is_mirrored(differences: list[float]) -> None:
    sample = np.array([differences])
    (_, low, high, _), (_, back_low, back_high, _) = (
        signed_rank_interval(sample * sign, 0.9) for sign in (1, -1)
    )
    assert (low[0], high[0]) == (-back_high[0], -back_low[0])
    assert signed_rank_p(sample)[0] == signed_rank_p(-sample)[0]
