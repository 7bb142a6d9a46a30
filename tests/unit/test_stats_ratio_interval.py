"""Tests of differences by block: intervals agree with their tests, also with autocorrelation and skewness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.made import known

from fslab.stats.autocorrelation import assumed, autocorrelation, of_cells, widening
from fslab.stats.difference_interval import (
    Floats,
    Located,
    asymmetric,
    locate,
    p_values,
    signed_rank_interval,
)
from fslab.stats.estimate_model import CORRELATED, CommonCorrelation
from fslab.stats.paired_differences import takes_ranks

ROUNDS = 3000
ERROR = 3 * np.sqrt(0.05 * 0.95 / ROUNDS)  # three standard errors of a simulated 5 %


def located(samples: Floats, coverage: float = 0.95) -> Located:
    return locate(samples, coverage, ranks=takes_ranks(samples.shape[1], coverage))


def false_differences(samples: Floats) -> float:
    found = located(samples)
    return float(((found.low > 0) | (found.high < 0)).mean())


def series(rho: float, blocks: int, *, seed: int = 13, rounds: int = ROUNDS) -> Floats:
    """Return AR(1) series with standard deviation 1, one per row."""
    noise = np.random.default_rng(seed).standard_normal((rounds, blocks))
    for block in range(1, blocks):
        noise[:, block] = rho * noise[:, block - 1] + np.sqrt(1 - rho**2) * noise[:, block]
    return noise


def bimodal(blocks: int, share: float) -> Floats:
    """Return differences of two cells with equal means; one of them has a ``share`` of its trials at a lower level."""
    rng = np.random.default_rng(round(100 * share))
    levels = np.where(rng.random((ROUNDS, blocks)) < share, share - 1, share)
    return 0.1 * rng.standard_normal((ROUNDS, blocks)) - levels


@pytest.mark.parametrize("blocks", [20, 25, 40])
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5])
def test_trials_that_resemble_the_ones_before_make_no_differences(rho: float, blocks: int) -> None:
    assert false_differences(series(rho, blocks)) <= 0.05 + ERROR


def test_without_widening_they_would() -> None:
    samples = series(0.5, 20)
    found = located(samples)
    low = found.center - (found.center - found.low) / found.widening
    high = found.center + (found.high - found.center) / found.widening
    assert ((low > 0) | (high < 0)).mean() > 0.2


@pytest.mark.parametrize("blocks", [3, 5, 8, 15])
def test_what_an_autocorrelation_of_one_half_could_make_is_rarely_held_to_rest_on_nothing(
    blocks: int,
) -> None:
    """Intervals √3 times as wide, right for a long series, would be wrong in 6 %."""
    rounds = 40_000
    found = located(series(0.5, blocks, rounds=rounds))
    longer = np.maximum(1, CORRELATED / found.widening) * (found.high - found.low) / 2
    wrong = (np.abs(found.high + found.low) / 2 > longer).mean()
    assert wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rounds)


def test_independent_trials_pay_little() -> None:
    found = widening(series(0.0, 40))
    assert np.median(found) == 1
    assert found.mean() < 1.15


def test_widening_by_hand() -> None:
    # Ten values of 1, then ten of -1: 18 products are 1 and one is -1, so lag 1 is 17/20 = 0.85. Corrected for the
    # bias, (20·0.85 + 1)/16 is above 1 and counts as 1. Widening uses at most 0.85: √(1.85/0.15).
    stair = np.array([[1.0] * 10 + [-1.0] * 10])
    assert autocorrelation(stair)[0] == 1
    assert widening(stair)[0] == pytest.approx(np.sqrt(1.85 / 0.15))
    # Alternating values have a negative autocorrelation. It does not make intervals narrower.
    assert widening(np.array([[1.0, -1.0] * 10]))[0] == 1
    assert widening(np.zeros((1, 30)))[0] == 1
    assert [widening(stair[:, :size])[0] for size in (2, 4, 5)] == [1, 1, 1]


def test_fewer_than_twenty_blocks_are_widened_for_what_is_beyond_chance_only() -> None:
    assert (widening(series(0.0, 15)) > 1).mean() < 0.05
    assert (widening(series(0.7, 15)) > 1).mean() > 0.3


def test_what_all_cells_show_together_counts() -> None:
    """Also for few blocks, and for a series that by chance does not show it itself."""
    strong, none = CommonCorrelation(lag1=0.5, values=100), CommonCorrelation(lag1=0.0, values=100)
    smooth, rough = series(0.9, 20, rounds=50), np.array([[1.0, -1.0] * 10])
    expected = np.sqrt((1.5 + 1.15 * np.sqrt(0.75 / 100)) / (0.5 - 1.15 * np.sqrt(0.75 / 100)))
    assert widening(rough, strong)[0] == pytest.approx(expected)
    assert widening(rough[:, :10], strong)[0] == pytest.approx(expected)
    assert widening(rough[:, :10], CommonCorrelation(lag1=0.4, values=20))[0] == 1  # within its error
    assert (widening(smooth, none) == widening(smooth)).mean() > 0.9  # clearly above what the others show
    assert (widening(series(0.0, 20), none) > 1).mean() < 0.6 * (widening(series(0.0, 20)) > 1).mean()


def test_twenty_blocks_are_enough_for_what_all_cells_show() -> None:
    """Below 20, so few values must show more than two standard errors: 0.35 of 40."""
    weak, rough = CommonCorrelation(lag1=0.3, values=40), np.array([[1.0, -1.0] * 10])
    upper = 0.3 + 1.15 * np.sqrt(0.91 / 40)
    assert widening(rough, weak)[0] == pytest.approx(np.sqrt((1 + upper) / (1 - upper)))
    assert widening(rough[:, :19], weak)[0] == 1


def test_the_autocorrelation_of_a_drift_is_that_of_all_cells_or_a_clearly_larger_one() -> None:
    def of(lag1: float, values: float) -> CommonCorrelation:
        return CommonCorrelation(lag1=lag1, values=values, least=10)

    def upper(lag1: float, values: float) -> float:
        return float(lag1 + 1.15 * np.sqrt((1 - lag1**2) / values))

    known_low, few = of(0.15, 100), of(0.15, 9)
    assert [assumed(None, None), assumed(None, of(0.9, 25)), assumed(few, of(0.0, 25))] == [0.5, 0.5, 0.5]
    assert assumed(known_low, None) == pytest.approx(upper(0.15, 100))
    assert assumed(known_low, of(0.34, 25)) == pytest.approx(upper(0.15, 100)), "within 1/√25"
    assert assumed(known_low, of(0.36, 25)) == pytest.approx(upper(0.36, 25))
    assert assumed(of(0.05, 100), None) == 0


def test_neither_a_level_nor_a_line_changes_how_much_cells_resemble_each_other() -> None:
    cells = [dict(enumerate(map(float, one))) for one in series(0.3, 12, rounds=6)]
    level = [{block: value + 8 for block, value in cell.items()} for cell in cells]
    line = [{block: value + 0.7 * block for block, value in cell.items()} for cell in cells]
    plain, raised = known(of_cells(cells)), known(of_cells(level))
    assert [raised.lag1, raised.values] == pytest.approx([plain.lag1, plain.values])
    beside, of_line = known(of_cells(cells, without_trend=True)), known(of_cells(line, without_trend=True))
    assert [of_line.lag1, of_line.values] == pytest.approx([beside.lag1, beside.values])
    assert known(of_cells(line)).lag1 > plain.lag1 + 0.3
    independent = [dict(enumerate(map(float, one))) for one in series(0.0, 12)]
    assert known(of_cells(independent, without_trend=True)).lag1 == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5])
def test_the_estimate_has_no_bias_to_speak_of(rho: float) -> None:
    # Without correction, it would be 0.05 to 0.15 too small for 20 blocks (Kendall 1954: (1 + 4ρ)/n).
    assert autocorrelation(series(rho, 20)).mean() == pytest.approx(rho, abs=0.03)


def test_cells_that_vary_together_show_no_more_than_one_of_them() -> None:
    own, shared = series(0.5, 30, rounds=8), series(0.5, 30, rounds=1)
    # A cell of 30 tells as much as 28³/30² values of a long series.
    for weight, values in ((0.0, 8 * 24.4), (1.0, 24.4)):
        cells = [
            dict(enumerate(np.sqrt(1 - weight) * one + np.sqrt(weight) * shared[0] + 1e-3 * one))
            for one in own
        ]
        found = known(of_cells(cells))
        assert found.lag1 == pytest.approx(autocorrelation(shared)[0] if weight else 0.5, abs=0.15)
        assert found.values == pytest.approx(values, rel=0.1)
    assert of_cells([dict(enumerate(one[:2])) for one in own]) is None
    assert of_cells([dict.fromkeys(range(20), 1.0)]) is None


@pytest.mark.parametrize(("rho", "count"), [(0.0, 5), (0.5, 5), (0.3, 8), (0.5, 8), (0.5, 20)])
def test_many_short_cells_show_how_much_values_resemble_the_ones_before(rho: float, count: int) -> None:
    found = known(of_cells([dict(enumerate(one)) for one in series(rho, count)]))
    assert found.lag1 == pytest.approx(rho, abs=0.05)
    # Estimates from 12 cells scatter as stated: the limit of 0.1 is 3.2 standard errors below 0.5 at 8 values.
    some = [
        of_cells([dict(enumerate(one)) for one in part]) for part in series(0.0, 8).reshape(-1, 12, 8)[:80]
    ]
    assert np.std([each.lag1 for each in some if each]) == pytest.approx((12 * 6**3 / 8**2) ** -0.5, rel=0.3)


@pytest.mark.parametrize("share", [0.15, 0.2, 0.3])
def test_a_second_mode_in_one_cell_makes_no_difference_of_equal_means(share: float) -> None:
    assert false_differences(bimodal(30, share)) <= 0.05 + ERROR


def test_signed_ranks_alone_would_see_one() -> None:
    _, low, high, _ = signed_rank_interval(bimodal(30, 0.2), 0.95)
    assert ((low > 0) | (high < 0)).mean() > 0.15


def test_symmetric_outliers_are_still_left_to_signed_ranks() -> None:
    """If one trial in ten is at another level in both cells, signed ranks are used: a mean needs 50 % more blocks."""
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal((ROUNDS, 30)) - 6 * (rng.random((ROUNDS, 30)) < 0.1) for _ in range(2))
    found, (_, low, high, _) = located(a - b), signed_rank_interval(a - b, 0.95)
    assert np.median((found.high - found.low) / found.widening) < 1.2 * np.median(high - low)
    assert false_differences(a - b) <= 0.05 + ERROR


def test_asymmetry_by_hand() -> None:
    assert not asymmetric(np.array([[-3.0, -1.0, 0.0, 1.0, 3.0]]))[0]  # mean and median are 0
    # Median 0, mean 1, mean distance from the median 1: √5/(0.7555·1.2533) = 2.36.
    assert asymmetric(np.array([[0.0, 0.0, 0.0, 0.0, 5.0]]))[0]


@pytest.mark.parametrize("blocks", [10, 20, 40])
def test_about_half_of_normal_samples_count_as_asymmetric(blocks: int) -> None:
    samples = np.random.default_rng(9).standard_normal((ROUNDS, blocks))
    assert asymmetric(samples).mean() == pytest.approx(0.45, abs=0.06)


def test_one_sided_values_are_covered_where_t_and_signed_ranks_are_not_enough() -> None:
    samples = np.random.default_rng(8).exponential(1, (ROUNDS, 30)) - 1
    found = located(samples)
    assert found.asymmetric.mean() > 0.8
    assert ((found.low > 0) | (found.high < 0)).mean() <= 0.05 + ERROR


@settings(max_examples=60)
@given(
    st.integers(min_value=3, max_value=40),
    st.integers(min_value=0, max_value=10_000),
    st.floats(min_value=-2, max_value=2),
    st.sampled_from([0.8, 0.95, 0.99]),
)
def test_interval_and_test_agree(blocks: int, seed: int, shift: float, coverage: float) -> None:
    rng = np.random.default_rng(seed)
    samples = np.cumsum(rng.exponential(1, (20, blocks)) - 1, axis=1) / 3 + shift
    ranks = takes_ranks(blocks, coverage)
    found = locate(samples, coverage, ranks=ranks)
    p_value = p_values(samples, found, ranks=ranks)
    assert (found.low <= found.center).all()
    assert (found.center <= found.high).all()
    clear = np.abs(p_value - (1 - coverage)) > 1e-9
    outside = (found.low > 0) | (found.high < 0)
    assert (outside == (p_value <= 1 - coverage))[clear].all()


def test_samples_do_not_touch_each_other() -> None:
    """A row's result does not depend on the other rows. The simulation passes thousands of rows, a comparison one."""
    samples = np.concatenate([series(0.5, 25, rounds=30), bimodal(25, 0.3)[:30]])
    together = located(samples)
    for row, sample in enumerate(samples):
        alone = located(sample[None])
        assert (alone.low[0], alone.high[0]) == pytest.approx(
            (together.low[row], together.high[row]), rel=1e-12
        )
        assert alone.asymmetric[0] == together.asymmetric[row]
