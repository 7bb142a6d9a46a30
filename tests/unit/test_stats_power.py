"""Tests of statistical power: which difference a comparison would detect, and which it excludes."""

from __future__ import annotations

from math import exp, expm1

import numpy as np
import pytest

from fslab.stats import Reason
from fslab.stats.compare import ComparisonMethod, RatioEstimate
from fslab.stats.interval import Interval
from fslab.stats.paired import compare_blocks
from fslab.stats.power import detectable, excluded, noncentrality
from fslab.stats.sequential import Looks, compare_at_look
from fslab.stats.student import two_sided_quantile


def estimate(low: float, high: float, *, n: int, method: ComparisonMethod) -> RatioEstimate:
    return RatioEstimate(
        n_a=n, n_b=n, ratio=1.0, interval=Interval(low=low, high=high, coverage=0.95), p_value=0.5,
        reason=None, needed=4, method=method,
    )  # fmt: skip


def test_with_the_spread_known_it_is_the_textbook_formula() -> None:
    # Cohen 1988, section 2.3: 1.95996 + 0.84162 standard errors for a power of 80 % at 5 %.
    assert noncentrality(1_000_000, 0.05, 0.8) == pytest.approx(1.95996 + 0.84162, abs=1e-4)


@pytest.mark.parametrize(("freedom", "error"), [(2, 0.05), (3, 0.05), (4, 0.05), (4, 0.0095), (19, 0.01)])
def test_two_experiments_of_one_kind_agree_with_it(freedom: int, error: float) -> None:
    """A simulation agrees with the formula: one experiment estimates the standard error, another tests the difference.

    Both are repeated 200,000 times.
    """
    rng, count = np.random.default_rng(freedom), 200_000
    told, other = (np.sqrt(rng.chisquare(freedom, count) / freedom) for _ in range(2))
    shift = noncentrality(freedom, error, 0.8) * told
    seen = np.abs(rng.standard_normal(count) + shift) > two_sided_quantile(error, freedom) * other
    assert seen.mean() == pytest.approx(0.8, abs=0.003)


def test_it_is_that_many_estimated_standard_errors() -> None:
    # 5 blocks: t of 4 at 95 % is 2.7764, so the standard error is 0.1/2.7764.
    found = detectable(estimate(exp(-0.1), exp(0.1), n=5, method=ComparisonMethod.PAIRED_T))
    assert found == pytest.approx(expm1(0.1 * noncentrality(4, 0.05, 0.8) / 2.7764), abs=1e-5)
    # Unpaired samples of 5 and 5 have 8 degrees of freedom: t is 2.3060.
    found = detectable(estimate(exp(-0.1), exp(0.1), n=5, method=ComparisonMethod.RANK_SUM))
    assert found == pytest.approx(expm1(0.1 * noncentrality(8, 0.05, 0.8) / 2.3060), abs=1e-5)


def test_without_an_interval_nothing_is_known() -> None:
    none = RatioEstimate(
        n_a=2, n_b=2, ratio=1.0, interval=None, p_value=1.0, reason=Reason.TOO_FEW_SAMPLES, needed=4
    )
    assert detectable(none) is None
    assert excluded(none) is None


def test_a_power_below_one_half_is_refused() -> None:
    with pytest.raises(ValueError, match="power"):
        detectable(estimate(0.9, 1.1, n=9, method=ComparisonMethod.PAIRED_T), power=0.3)


def test_the_far_end_is_ruled_out() -> None:
    assert excluded(estimate(0.96, 1.02, n=9, method=ComparisonMethod.PAIRED_T)) == pytest.approx(
        1 / 0.96 - 1
    )
    assert excluded(estimate(0.99, 1.06, n=9, method=ComparisonMethod.PAIRED_T)) == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("size", "looks"),
    [(3, None), (4, None), (5, None), (8, None), (20, None), (5, Looks(first=5)), (12, Looks(first=5))],
)
def test_the_promise_is_kept(size: int, looks: Looks | None) -> None:
    """A difference of the size that ``detectable`` returns for a first campaign is shown by 80 % of other campaigns."""
    rng, rounds, seen = np.random.default_rng(size), 1500, 0

    def look(ratio: float) -> RatioEstimate:
        a, b = (dict(enumerate(np.exp(rng.normal(0, 0.03, size)).tolist())) for _ in range(2))
        a = {block: ratio * value for block, value in a.items()}
        return compare_at_look(a, b, looks=looks) if looks else compare_blocks(a, b)

    for _ in range(rounds):
        promised = detectable(look(1.0))
        assert promised is not None
        seen += look(1 + promised).differs is True
    assert seen / rounds == pytest.approx(0.8, abs=0.031)  # three standard errors of the simulation
