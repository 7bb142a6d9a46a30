"""Tests of ratios by block: published data, which method is used when, and that blocks cancel drift."""

from __future__ import annotations

import random
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import skew
from tests.made import known

from fslab.stats import Reason
from fslab.stats.estimate_model import CommonCorrelation, ComparisonMethod, NoisePrior
from fslab.stats.paired_differences import compare_blocks
from fslab.stats.unpaired_differences import compare_ratio

# Student 1908 (Cushny & Peebles): hours of sleep gained by ten patients with two drugs. Mean difference -1.58,
# t = -4.0621 on 9 degrees of freedom, p = 0.00283.
DEXTRO = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
LAEVO = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

VALUES = st.floats(min_value=1e-3, max_value=1e9, allow_subnormal=False)
CELLS = st.dictionaries(st.integers(min_value=0, max_value=20), VALUES, min_size=1, max_size=16)


def blocks(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_published_example_of_student() -> None:
    # t is used: ten signed ranks are too coarse at 99 %. The logarithm of the ratio is the published difference.
    found = compare_blocks(
        blocks(*(exp(value) for value in DEXTRO)), blocks(*(exp(value) for value in LAEVO)), coverage=0.99
    )
    assert found.method is ComparisonMethod.PAIRED_T
    assert log(known(found.ratio)) == pytest.approx(-1.58)
    assert found.p_value == pytest.approx(0.00283, abs=5e-6)
    # The standard error is 1.58/4.0621, and t of 9 at 99 % is 3.2498.
    assert log(known(found.interval).low) == pytest.approx(-1.58 - 3.2498 * 1.58 / 4.0621, abs=1e-4)
    assert log(known(found.interval).high) == pytest.approx(-1.58 + 3.2498 * 1.58 / 4.0621, abs=1e-4)


def test_ten_symmetric_blocks_make_signed_ranks() -> None:
    found = compare_blocks(
        blocks(*(exp(value) for value in (1, 2, 3, 4, 5, 5.5, 6.5, 7.5, 8.5, 9.5))), blocks(*[1.0] * 10)
    )
    assert found.method is ComparisonMethod.SIGNED_RANK
    # The critical value for ten is 8: P(T ≤ 8) = 25/1024.
    assert known(found.interval).coverage == pytest.approx(1 - 50 / 1024)
    assert found.differs is True


def test_ten_uneven_blocks_are_no_narrower_than_t() -> None:
    """One difference of 4.6 makes the sample asymmetric (mean 1.58, median 1.3): its interval contains that of t."""
    found = compare_blocks(
        blocks(*(exp(value) for value in DEXTRO)), blocks(*(exp(value) for value in LAEVO))
    )
    assert found.method is ComparisonMethod.ASYMMETRIC
    assert log(known(found.ratio)) == pytest.approx(-1.58)
    # t of 9 at 95 % is 2.2622. Signed ranks alone give -2.35 to -0.95; the skewness correction extends the lower end.
    assert log(known(found.interval).low) < -1.58 - 2.2622 * 1.58 / 4.0621 + 1e-4
    assert log(known(found.interval).high) == pytest.approx(-1.58 + 2.2622 * 1.58 / 4.0621, abs=1e-4)
    assert found.differs is True
    differences = np.array(DEXTRO) - np.array(LAEVO)
    g = skew(differences, bias=False) / 10**0.5
    bent = brentq(lambda t: t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6 - 2.262157, -100, 100)  # Hall 1992
    assert log(known(found.interval).low) == pytest.approx(-1.58 - bent * differences.std(ddof=1) / 10**0.5)


@pytest.mark.parametrize(("values", "rests"), [(49, True), (50, False)])
def test_many_cells_show_in_ten_blocks_whether_trials_are_independent(values: int, rests: bool) -> None:
    correlation = CommonCorrelation(lag1=0.0, values=values)
    prior = NoisePrior(variance=1.0, freedom=0.0, most=0.0, correlation=correlation)
    steps = [0.7 + step for step in (-1.2, 0.9, -0.7, 1.1, -0.4, 0.6, -0.1, 0.2, 0.45, -0.35)]
    faint = compare_blocks(blocks(*map(exp, steps)), blocks(*[1.0] * 10), prior=prior)
    assert faint.differs
    assert faint.rests_on_independence is rests
    assert (faint.p_if_correlated is not None) is rests


def test_only_blocks_that_both_have_count() -> None:
    a = {0: 2.0, 1: 2.2, 2: 2.1, 3: 2.3, 7: 900.0}
    b = {0: 1.0, 1: 1.1, 2: 1.0, 3: 1.2, 8: 0.001}
    found = compare_blocks(a, b)
    assert (found.n_a, found.n_b, found.method) == (4, 4, ComparisonMethod.PAIRED_T)
    # The quotients are 2, 2, 2.1 and 1.9167. The outliers in blocks 7 and 8 have no effect.
    assert found.ratio == pytest.approx((2 * 2 * 2.1 * 2.3 / 1.2) ** 0.25)


def test_too_few_common_blocks_fall_back_on_the_unpaired() -> None:
    a, b = (
        blocks(20, 21, 22, 23, 24),
        {block + 3: value for block, value in blocks(10, 11, 12, 13, 14).items()},
    )
    found = compare_blocks(a, b)
    assert found.method is ComparisonMethod.RANK_SUM
    assert found.interval == compare_ratio([*a.values()], [*b.values()]).interval
    assert (found.n_a, found.n_b, found.needed) == (5, 5, 3)
    # Block effects do not cancel: what counts is how much the values themselves resemble the ones before.
    both = CommonCorrelation(lag1=0.5, values=200), CommonCorrelation(lag1=0.0, values=200)
    prior = NoisePrior(variance=1e-4, freedom=9.0, most=90.0, correlation=both[1], alone=both)
    wider = compare_blocks(a, b, prior=prior)
    assert wider.interval == compare_ratio([*a.values()], [*b.values()], common=both).interval
    assert wider.correlation_known
    assert wider.widening > found.widening


def test_two_blocks_are_too_few() -> None:
    found = compare_blocks({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.1})
    assert (found.interval, found.reason, found.needed) == (None, Reason.TOO_FEW_SAMPLES, 3)


def test_three_blocks_give_an_interval() -> None:
    """The differences are −0.01, 0 and 0.01: 0.01/√3 (standard error) × 4.3027 (t(0.975; 2)) = 0.02484."""
    found = compare_blocks({0: exp(-0.01), 1: 1.0, 2: exp(0.01)}, {0: 1.0, 1: 1.0, 2: 1.0})
    assert found.method is ComparisonMethod.PAIRED_T
    assert found.half_width == pytest.approx(0.02484, abs=1e-5)


def test_three_equal_quotients_show_no_noise_of_their_own() -> None:
    """The values do: from block to block they vary by far more than their quotients."""
    found = compare_blocks(blocks(1, 2, 3), blocks(1, 2, 3))
    assert (found.method, found.differs) == (ComparisonMethod.WELCH_T, False)
    assert found.ratio == pytest.approx(1.0)
    assert known(found.half_width) > 1
    same = compare_blocks(blocks(8, 8, 8), blocks(8, 8, 8))
    assert (same.interval, same.reason, same.needed) == (None, Reason.TOO_FEW_SAMPLES, 4)


def test_a_metric_coarser_than_its_noise_is_no_certainty() -> None:
    # Five quotients of exactly 1: the interval of t would be 1.00 to 1.00.
    five = compare_blocks(blocks(*[8.0] * 5), blocks(*[8.0] * 5))
    assert five.method is ComparisonMethod.RANK_SUM
    four = compare_blocks(blocks(*[8.0] * 4), blocks(*[8.0] * 4), coverage=0.98)
    assert (four.interval, four.needed) == (None, 5)  # unpaired, 5 and 5 are enough; signed ranks need 7
    eight = compare_blocks(blocks(*[8.0] * 8), blocks(*[8.0] * 8), coverage=0.98)
    assert eight.method is ComparisonMethod.SIGNED_RANK


@pytest.mark.parametrize(
    ("a", "reason"),
    [({}, Reason.NO_SAMPLES), ({0: 0.0}, Reason.NOT_POSITIVE), ({0: inf}, Reason.NOT_FINITE)],
)
def test_what_has_no_ratio_is_an_answer(a: dict[int, float], reason: Reason) -> None:
    found = compare_blocks(a, blocks(1.0, 2.0))
    assert (found.reason, found.ratio, found.interval, found.p_value) == (reason, None, None, None)


@given(CELLS, CELLS, st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_test_and_estimate_agree(a: dict[int, float], b: dict[int, float], coverage: float) -> None:
    found = compare_blocks(a, b, coverage=coverage)
    assert found.coverage == coverage
    if found.interval is not None and found.ratio is not None and found.p_value is not None:
        assert found.interval.low <= found.ratio * (1 + 1e-9)
        assert found.ratio <= found.interval.high * (1 + 1e-9)
        if abs(found.p_value - (1 - coverage)) > 1e-9:
            assert found.differs == (found.p_value <= 1 - coverage)


@given(CELLS, CELLS)
def test_the_other_way_round_everything_is_inverted(a: dict[int, float], b: dict[int, float]) -> None:
    there, back = compare_blocks(a, b), compare_blocks(b, a)
    assert there.method is back.method
    if there.interval is not None and back.interval is not None:
        assert there.p_value == pytest.approx(back.p_value)
        assert log(there.interval.low) == pytest.approx(-log(back.interval.high), abs=1e-6)


def test_blocks_cancel_what_drifts() -> None:
    """On a device that becomes 5 % slower with each block, the paired interval is narrow and covers the true ratio."""
    generator = random.Random(20261121)
    narrower, covered, rounds = 0, 0, 1000
    for _ in range(rounds):
        drift = [exp(-0.05 * block + generator.gauss(0, 0.02)) for block in range(8)]
        a = blocks(*(1.1 * level * exp(generator.gauss(0, 0.01)) for level in drift))
        b = blocks(*(level * exp(generator.gauss(0, 0.01)) for level in drift))
        paired, unpaired = compare_blocks(a, b), compare_ratio([*a.values()], [*b.values()])
        covered += known(paired.interval).low <= 1.1 <= known(paired.interval).high
        narrower += 4 * known(paired.half_width) < known(unpaired.half_width)
    assert narrower > 0.95 * rounds
    assert covered / rounds == pytest.approx(0.95, abs=0.02)  # three standard errors of the simulation


def test_a_single_common_block_is_not_called_too_coarse() -> None:
    """A single difference does not show that most differences are equal, so 3 blocks are needed as usual."""
    found = compare_blocks({0: 1.0}, {0: 2.0, 1: 2.1}, coverage=0.9868)
    assert (found.interval, found.needed) == (None, 3)
