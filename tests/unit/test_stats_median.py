"""Tests of medians and their order-statistic intervals, against published tables and simulation."""

from __future__ import annotations

import random
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made import known

from fslab.stats import Reason
from fslab.stats.median import estimate_median, half_range, median, median_interval, rank_coverage

POSITIVE = st.floats(min_value=1e-3, max_value=1e12, allow_subnormal=False)


def test_median_of_nothing_is_unknown() -> None:
    assert median([]) is None


def test_median_of_even_number_is_mean_of_middle_two() -> None:
    assert median([4.0, 1.0, 3.0, 10.0]) == 3.5


# Ranks and coverages of 95 % intervals (Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010,
# table A.1, symmetric rows). The coverages are sums of binomial coefficients over 2^n: 1 - 2(1+10)/1024 for n = 10,
# 1 - 2·21700/1048576 for n = 20.
@pytest.mark.parametrize(
    ("size", "rank", "coverage"),
    [(6, 1, 0.96875), (7, 1, 0.984375), (10, 2, 0.978515625), (20, 6, 1 - 43400 / 1048576)],
)
def test_ranks_of_published_table(size: int, rank: int, coverage: float) -> None:
    found = known(median_interval([float(i) for i in range(1, size + 1)]))
    assert (found.low, found.high) == (rank, size + 1 - rank)
    assert found.coverage == pytest.approx(coverage)


def test_five_samples_do_not_reach_95_percent() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert median_interval(values) is None
    assert median_interval([*values, 6.0]) is not None


def test_range_of_five_samples_covers_93_75_percent() -> None:
    found = known(median_interval([5.0, 1.0, 4.0, 2.0, 3.0], coverage=0.93))
    assert (found.low, found.high, found.coverage) == (1.0, 5.0, 0.9375)


@pytest.mark.parametrize("values", [[], [1.0] * 9 + [nan], [1.0] * 9 + [inf]])
def test_no_samples_and_not_finite_are_answers(values: list[float]) -> None:
    assert median_interval(values) is None


@given(st.lists(POSITIVE, min_size=1, max_size=40), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_interval_holds_the_median_and_at_least_the_wanted_coverage(
    values: list[float], coverage: float
) -> None:
    interval, middle = median_interval(values, coverage=coverage), median(values)
    assert (interval is None) == (rank_coverage(len(values), 1) < coverage)
    if interval is not None and middle is not None:
        assert interval.low <= middle <= interval.high
        assert interval.coverage >= coverage


def test_stated_coverage_is_the_simulated_one() -> None:
    generator = random.Random(20261120)
    hits, rounds = 0, 20_000
    for _ in range(rounds):
        found = known(median_interval([generator.expovariate(1.0) for _ in range(9)]))
        hits += found.low <= 0.6931471805599453 <= found.high
    # n = 9: 1 - 2(1+9)/512 = 0.9609. The standard error of the simulation is 0.0014.
    assert rank_coverage(9, 2) == 1 - 20 / 512
    assert hits / rounds == pytest.approx(1 - 20 / 512, abs=0.006)


@pytest.mark.parametrize(("coverage", "needed"), [(0.95, 6), (0.9955, 9), (0.9974, 10)])
def test_the_needed_number_is_the_smallest_with_an_interval(coverage: float, needed: int) -> None:
    assert median_interval([1.0] * (needed - 1), coverage=coverage) is None
    few = estimate_median([0.0] * (needed - 1), coverage=coverage)
    assert (few.reason, few.interval, few.needed) == (Reason.TOO_FEW_SAMPLES, None, needed)
    found = estimate_median([0.0] * needed, coverage=coverage)
    assert (found.ratio, found.needed) == (0.0, needed)
    assert found.interval == median_interval([0.0] * needed, coverage=coverage) is not None


def test_half_range_is_a_fraction_of_the_median() -> None:
    assert half_range([90.0, 100.0, 120.0]) == pytest.approx(0.15)


@pytest.mark.parametrize("values", [[], [5.0], [0.0, 0.0], [-1.0, -2.0]])
def test_half_range_is_unknown_rather_than_zero(values: list[float]) -> None:
    assert half_range(values) is None


@given(st.lists(POSITIVE, min_size=2, max_size=20), st.sampled_from([0.25, 2.0, 1024.0]))
def test_half_range_does_not_depend_on_the_unit(values: list[float], factor: float) -> None:
    assert half_range([value * factor for value in values]) == pytest.approx(half_range(values))
