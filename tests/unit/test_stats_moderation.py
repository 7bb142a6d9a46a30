"""Tests of moderated variances: how other cells of a group contribute to a comparison of few blocks."""

from dataclasses import replace
from itertools import combinations
from math import exp, inf, log

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import digamma, polygamma
from scipy.stats import chi2
from tests.made import known

from fslab.stats.estimate_model import ComparisonMethod, NoisePrior
from fslab.stats.moderated_variance import _rounds, _trigamma_inverse, fit, moderated
from fslab.stats.paired_differences import compare_blocks

PRIOR = NoisePrior(variance=1.0, freedom=10.0, most=1000.0, among=4)


def group(random: np.random.Generator, spreads: np.ndarray, blocks: int) -> list[dict[int, float]]:
    common = random.normal(size=blocks) * 3
    return [dict(enumerate(common + spread * random.normal(size=blocks))) for spread in spreads]


def test_without_a_prior_nothing_changes() -> None:
    variances = np.array([0.5, 2.0])
    found, freedom = moderated(variances, 3, None)
    assert found.tolist() == [0.5, 2.0]
    assert freedom.tolist() == [3.0, 3.0]


def test_a_variance_and_the_prior_are_averaged_by_their_degrees_of_freedom() -> None:
    found, freedom = moderated(np.array([0.4]), 2, PRIOR)
    assert found[0] == pytest.approx((10 * 1.0 + 2 * 0.4) / 12)
    assert freedom[0] == 12


def test_the_largest_of_many_variances_is_less_surprising() -> None:
    one, many = (moderated(np.array([5.0]), 2, replace(PRIOR, among=count)) for count in (4, 400))
    assert one[0][0] > many[0][0]
    assert one[1][0] < many[1][0] == 12


def test_no_more_degrees_of_freedom_than_all_cells_have() -> None:
    _, freedom = moderated(np.array([1.0]), 2, NoisePrior(variance=1.0, freedom=inf, most=9.0))
    assert freedom[0] == 9


def test_a_variance_of_another_size_stays() -> None:
    found, freedom = moderated(np.array([100.0]), 2, PRIOR)
    assert found[0] == pytest.approx(100, rel=0.01)
    assert freedom[0] == pytest.approx(2, abs=0.01)


def test_a_variance_that_chance_hardly_makes_so_small_stays() -> None:
    """Of eight blocks. Three blocks never show that: their values may agree because they have few digits."""
    found, freedom = moderated(np.array([1e-4]), 7, PRIOR)
    assert found[0] == pytest.approx(1e-4, rel=0.01)
    assert freedom[0] == pytest.approx(7, abs=0.01)
    usual, _ = moderated(np.array([0.05]), 7, PRIOR)
    assert usual[0] == pytest.approx((10 * 1.0 + 7 * 0.05) / 17)
    few, _ = moderated(np.array([1e-12]), 2, PRIOR)
    assert few[0] > 0.8


def test_the_prior_counts_less_the_larger_the_variance() -> None:
    variances = np.array([0.1, 1.0, 5.0, 10.0, 30.0, 100.0])
    found, freedom = moderated(variances, 2, PRIOR)
    assert (np.diff(found) > 0).all()
    assert (np.diff(freedom) <= 0).all()


def test_equal_noise_is_found_in_spite_of_common_changes() -> None:
    random = np.random.default_rng(1)
    prior = known(fit([group(random, np.full(40, 0.03), 4)]))
    assert prior.variance == pytest.approx(0.03**2, rel=0.25)
    assert prior.freedom > 6
    assert prior.most == 39 * 3


def test_unequal_noise_counts_little() -> None:
    random = np.random.default_rng(2)
    prior = known(fit([group(random, np.exp(random.normal(size=60)), 6)]))
    assert 0.8 < prior.freedom < 4


@pytest.mark.parametrize(("spread", "low", "high"), [(0.0, 8, inf), (1.0, 0.8, 4)])
def test_small_workloads_show_the_noise_together(spread: float, low: float, high: float) -> None:
    random = np.random.default_rng(3)
    sizes = np.exp(spread * random.normal(size=40))
    prior = known(fit([group(random, np.full(3, size), 4) for size in sizes]))
    assert low < prior.freedom <= high
    assert prior.most == 40 * 2 * 3


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [{0: 1.0, 1: 2.0, 2: number * 4.0} for number in range(5)],  # only two pairs without a common cell
        [{0: 1.0, 1: 2.0}] * 9,  # too few blocks
        [{0: 1.0, 1: 1.0, 2: 1.0}] * 9,  # no noise
        [{each: 1.0, each + 20: 2.0, each + 40: 3.0} for each in range(9)],  # no common block
    ],
)
def test_what_shows_no_noise_has_no_prior(cells: list[dict[int, float]]) -> None:
    assert fit([cells]) is None


def test_the_prior_is_that_of_the_formulas() -> None:
    """Those of docs/statistics.md. Four cells make three rounds of two pairs; two cells make one pair in each round."""
    random = np.random.default_rng(11)
    four, two = group(random, np.array([1.0, 2.0, 0.7, 1.3]), 5), group(random, np.array([1.5, 0.6]), 4)

    def z(a: dict[int, float], b: dict[int, float]) -> float:
        variance, f = np.var([a[block] - b[block] for block in a], ddof=1) / 2, len(a) - 1
        return float(log(variance) - digamma(f / 2) + log(f / 2))

    matchings = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
    rounds = [[z(*two), *(z(four[a], four[b]) for a, b in pairs)] for pairs in matchings]
    scatter = np.mean([np.var(each, ddof=1) for each in rounds]) * 3 / chi2.ppf(0.2, 3)  # C = 3 + 1
    excess = scatter - (polygamma(1, 3 / 2) + 2 * polygamma(1, 4 / 2)) / 3
    prior = known(fit([four, two]))
    assert prior.variance == pytest.approx(exp(np.mean(rounds)))
    assert prior.freedom == pytest.approx(
        2 * brentq(lambda x: polygamma(1, x) - excess, 0.01, 1000), rel=1e-6
    )
    assert prior.most == 3 * 4 + 1 * 3


@pytest.mark.parametrize("count", [4, 5, 9, 12, 40])
def test_the_pairs_of_a_round_have_no_cell_in_common(count: int) -> None:
    rounds = _rounds(count)
    seen = [frozenset(pair) for pairs in rounds for pair in pairs]
    assert len(set(seen)) == len(seen)
    for pairs in rounds:
        members = [member for pair in pairs for member in pair]
        assert len(set(members)) == len(members) >= count - 1
    if count <= 16:
        assert set(seen) == {frozenset(pair) for pair in combinations(range(count), 2)}


@pytest.mark.parametrize("value", [1e-4, 0.3, 1.0, 50.0])
def test_the_inverse_of_the_trigamma_function(value: float) -> None:
    assert polygamma(1, _trigamma_inverse(value)) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(("spread", "most"), [(0.0, 0.06), (0.6, 0.075)])
def test_equal_cells_seldom_differ(spread: float, most: float) -> None:
    """About 5 % of the 95 % intervals of equal cells show a difference. ``spread``: how unequal the cells' noise is."""
    random = np.random.default_rng(4)
    wrong = count = 0
    for _ in range(60):
        cells = group(random, np.exp(spread * random.normal(size=16)), 3)
        prior = known(fit([cells]))
        for a, b in zip(cells[::2], cells[1::2], strict=True):
            found = compare_blocks(powers(a), powers(b), prior=prior.times(2))
            wrong += found.differs is True
            count += 1
    assert wrong / count < most


@pytest.mark.parametrize("blocks", [3, 5, 8])
def test_one_of_three_stacks_with_more_noise_makes_no_false_differences(blocks: int) -> None:
    """In each of eight workloads, one stack is six times as noisy as the two others."""
    random = np.random.default_rng(6)
    p_values: list[float] = []
    for _ in range(150):
        workloads = [group(random, np.array([6.0, 1.0, 1.0]), blocks) for _ in range(8)]
        prior = known(fit(workloads))
        pairs = [pair for cells in workloads[::4] for pair in combinations(map(powers, cells), 2)]
        p_values += [compare_blocks(a, b, prior=prior.times(2)).p_value or 0.0 for a, b in pairs]
    assert (np.array(p_values) < 0.05).mean() < 0.06
    assert (np.array(p_values) < 0.01).mean() < 0.015


def test_a_row_of_trials_that_resemble_the_ones_before_shows_no_difference() -> None:
    """Six equal cells, 20 blocks, autocorrelation 0.5, Holm's correction over 15 comparisons."""
    random, false, rows = np.random.default_rng(7), 0, 120
    for _ in range(rows):
        noise = random.normal(size=(6, 20))
        for block in range(1, 20):
            noise[:, block] = 0.5 * noise[:, block - 1] + np.sqrt(0.75) * noise[:, block]
        cells = [dict(enumerate(map(float, cell))) for cell in noise]
        prior = known(fit([cells]))
        found = [
            compare_blocks(powers(a), powers(b), prior=prior.times(2)) for a, b in combinations(cells, 2)
        ]
        false += min(one.p_value or 0.0 for one in found) * len(found) < 0.05
    assert false / rows < 0.07


def test_too_few_pairs_show_autocorrelation_but_no_variance() -> None:
    random = np.random.default_rng(8)
    prior = known(fit([group(random, np.ones(3), 12)]))
    assert prior.freedom == 0
    assert known(prior.correlation).values == 24, "the blocks use up one of the three cells"
    values = powers(dict(enumerate(random.normal(size=4))))
    ones = dict.fromkeys(values, 1.0)
    assert compare_blocks(values, ones, prior=prior) == compare_blocks(values, ones)
    assert fit([group(random, np.ones(3), 9)]) is None


def powers(values: dict[int, float]) -> dict[int, float]:
    return {block: exp(value) for block, value in values.items()}


def test_a_ratio_is_known_better_with_a_prior() -> None:
    a, b = powers({0: 0.40, 1: 0.45, 2: 0.35}), powers({0: 0.0, 1: 0.01, 2: -0.01})
    prior = NoisePrior(variance=0.002, freedom=12.0, most=80.0, among=4)
    plain, found = compare_blocks(a, b, coverage=0.998), compare_blocks(a, b, coverage=0.998, prior=prior)
    assert found.method is ComparisonMethod.MODERATED_T
    assert found.ratio == plain.ratio
    assert known(found.half_width) < known(plain.half_width) / 4
    assert (plain.differs, found.differs) == (False, True)
    assert known(found.p_value) < 0.002
    assert found.borrowed == 12


def test_a_test_and_its_interval_agree() -> None:
    random = np.random.default_rng(5)
    prior = NoisePrior(variance=0.5, freedom=5.0, most=80.0)
    for _ in range(60):
        values = dict(enumerate(random.normal(size=3) + 0.8))
        found = compare_blocks(powers(values), dict.fromkeys(values, 1.0), prior=prior)
        assert (known(found.p_value) < 0.05) is found.differs


def test_many_blocks_need_no_prior() -> None:
    values = {block: exp(0.01 * (block % 7)) for block in range(12)}
    prior = NoisePrior(variance=log(2), freedom=50.0, most=80.0)
    ones = dict.fromkeys(values, 1.0)
    assert compare_blocks(values, ones, prior=prior) == compare_blocks(values, ones)
