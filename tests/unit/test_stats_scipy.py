"""Tests of fslab's statistics against scipy: results agree to a relative 1e-12."""

from __future__ import annotations

import numpy as np
import pytest
import scipy  # its parts are imported where they are used: all workers import this file
from tests.made import known

from fslab.stats.difference_interval import signed_rank_p
from fslab.stats.distributions import beta_tail, lower_tails, two_sided_quantile
from fslab.stats.time_series import trend
from fslab.stats.unpaired_differences import lower_tail


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 9, 30, 100, 100_000])
def test_quantiles_of_t(freedom: int) -> None:
    for probability in (1e-9, 1e-4, 0.0056, 0.05, 0.5, 0.9):
        assert two_sided_quantile(probability, freedom) == pytest.approx(
            scipy.stats.t.isf(probability / 2, freedom), rel=1e-12
        )


def test_the_tail_of_beta() -> None:
    for a, b, x in ((0.5, 0.5, 0.01), (4.2, 4.2, 0.3), (60, 60, 0.5), (2, 17, 0.9)):
        assert beta_tail(a, b, x) == pytest.approx(scipy.stats.beta.cdf(x, a, b), rel=1e-12)


@pytest.mark.parametrize(("a", "b"), [(3, 2), (4, 4), (5, 9), (12, 12)])
def test_mann_whitney(a: int, b: int) -> None:
    values = np.random.default_rng(a * b).permutation(a + b).astype(float)
    found = scipy.stats.mannwhitneyu(values[:a], values[a:], alternative="less", method="exact")
    assert lower_tail(a, b, int(found.statistic)) == pytest.approx(found.pvalue, rel=1e-12)


@pytest.mark.parametrize("size", [3, 6, 10, 25, 50])
def test_signed_ranks(size: int) -> None:
    sample = np.random.default_rng(size).normal(0.3, 1, size)
    found = scipy.stats.wilcoxon(sample, method="exact")
    assert signed_rank_p(sample[None])[0] == pytest.approx(found.pvalue, rel=1e-12)
    assert lower_tails(size)[-1] == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("size", [5, 9, 20, 50])
def test_trend(size: int) -> None:
    values = np.random.default_rng(size).normal(0, 1, size) + np.arange(size) / size
    found = known(trend([*map(float, values)]))
    theirs = scipy.stats.kendalltau(np.arange(size), values, method="exact")
    assert found.p_value == pytest.approx(theirs.pvalue, rel=1e-12)
    assert found.slope == pytest.approx(scipy.stats.theilslopes(values, np.arange(size)).slope, rel=1e-12)


def test_kendalls_variance_for_equal_values_and_equal_times_is_scipy_s() -> None:
    """scipy has no continuity correction: its p-value gives the standard deviation of the score."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        times, values = np.sort(rng.integers(0, 4, 14)).astype(float), rng.integers(0, 5, 14).astype(float)
        signs = np.sign(np.subtract.outer(times, times) * np.subtract.outer(values, values))
        score = abs(int(signs.sum()) // 2)
        theirs = scipy.stats.kendalltau(times, values, method="asymptotic").pvalue
        if score < 2:
            continue
        deviation = score / scipy.stats.norm.isf(theirs / 2)
        found = known(trend([*map(float, values)], [*map(float, times)]))
        assert found.p_value == pytest.approx(2 * scipy.stats.norm.sf((score - 1) / deviation), rel=1e-9)
