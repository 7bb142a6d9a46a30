"""Tests of Student's t and the beta distribution, against closed forms and published tables."""

from __future__ import annotations

from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr

from fslab.stats.student import beta_tail, mean_and_error, two_sided_quantile


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
