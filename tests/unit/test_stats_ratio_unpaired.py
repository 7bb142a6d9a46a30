"""Tests of the ratio of two samples: published examples and tables, simulation, and general properties of ratios."""

from __future__ import annotations

import random
from itertools import permutations
from math import exp, inf, log, nan, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made import known

from fslab.stats import Reason, of_logarithms
from fslab.stats.distributions import two_sided_tail
from fslab.stats.estimate_model import CORRELATED, CommonCorrelation, ComparisonMethod, RatioEstimate
from fslab.stats.unpaired_differences import compare_ratio, lower_tail, pairs_needed

# Hollander & Wolfe 1999, table 4.1 (tritiated water through human chorioamnion), at term and at 12–26 weeks. Results in
# the book and of R's coin::wilcox_test: difference 0.305, 95 % interval -0.15 … 0.76, exact two-sided p 0.2544
# (one-sided 0.1272).
AT_TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]

SAMPLES = st.lists(st.floats(min_value=1e-3, max_value=1e9, allow_subnormal=False), min_size=1, max_size=9)


def ends(estimate: RatioEstimate) -> tuple[float, float]:
    return known(estimate.interval).low, known(estimate.interval).high


def test_published_example_of_hollander_and_wolfe() -> None:
    # The published result is a difference. The ratio of exponentials is the exponential of the difference.
    found = compare_ratio([exp(value) for value in AT_TERM], [exp(value) for value in EARLY])
    assert log(known(found.ratio)) == pytest.approx(0.305)
    # The interval also contains Welch's: -0.020 … 0.694 here.
    assert [log(end) for end in ends(found)] == pytest.approx([-0.15, 0.76])
    assert found.p_value == pytest.approx(0.2544, abs=5e-5)
    assert found.differs is False


# The largest U that is significant at 5 % two-sided: published critical values of the Mann–Whitney statistic (Siegel &
# Castellan 1988, table J; Milton, JASA 59 (1964) 925).
@pytest.mark.parametrize(
    ("a", "b", "critical"),
    [(4, 4, 0), (5, 5, 2), (5, 10, 8), (6, 6, 5), (7, 7, 8), (8, 8, 13), (10, 10, 23), (20, 20, 127)],
)
def test_critical_values_of_published_table(a: int, b: int, critical: int) -> None:
    assert 2 * lower_tail(a, b, critical) <= 0.05 < 2 * lower_tail(a, b, critical + 1)


def test_distribution_of_u_is_that_of_all_arrangements() -> None:
    counts = [0] * 7
    for order in set(permutations("aaabb")):
        counts[sum(order[i] == "a" for j in range(5) if order[j] == "b" for i in range(j))] += 1
    below = [sum(counts[: value + 1]) / 10 for value in range(7)]
    assert [lower_tail(3, 2, value) for value in range(7)] == pytest.approx(below)


def test_five_against_five_by_hand() -> None:
    # Quotients in ascending order: 20/14, 21/14, 20/13 …; in descending order: 24/10, 23/10, 22/10 …
    found = compare_ratio([20.0, 21.0, 22.0, 23.0, 24.0], [10.0, 11.0, 12.0, 13.0, 14.0])
    assert known(found.interval).coverage == pytest.approx(1 - 2 * 4 / 252)
    assert ends(found) == pytest.approx((20 / 13, 22 / 10))  # Welch's, 1.56 to 2.17, lies within
    assert found.p_value == pytest.approx(2 / 252)
    assert found.differs is True


def test_a_smaller_sample_may_be_noisier_than_the_other() -> None:
    """Ranks alone show a difference in 20 % of such comparisons, which Welch's interval does not."""
    generator, rounds = random.Random(5), 1000
    false = 0
    for _ in range(rounds):
        few = [exp(generator.gauss(0, 0.12)) for _ in range(5)]
        many = [exp(generator.gauss(0, 0.03)) for _ in range(40)]
        found = compare_ratio(few, many)
        false += found.differs is True
        assert known(found.p_value) <= 0.05 or not found.differs
    assert false / rounds <= 0.05 + 3 * 0.007


def test_ranks_alone_do_not_show_a_difference_from_a_noisier_sample_of_the_same_size() -> None:
    """All values of one side are above those of the other: ranks give 2/12870. Welch: mean 0.395, t = 2.02 of 7."""
    logs = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.78, 1.6]
    noisy, quiet = [exp(each) for each in logs], [exp((each % 4 - 1.5) / 1000) for each in range(8)]
    found = compare_ratio(noisy, quiet)
    assert found.method is ComparisonMethod.RANK_SUM
    assert found.differs is False
    error = sqrt(sum((each - 0.395) ** 2 for each in logs) / 7 / 8)
    assert found.p_value == pytest.approx(two_sided_tail(0.395 / error, 7), rel=1e-3)
    low, high = map(log, ends(found))
    # t(97.5 %; 7) is 2.3646. Ranks alone: from 0.02 to 0.78.
    assert low == pytest.approx(0.395 - 2.3646 * error, abs=1e-3)
    assert high == pytest.approx(0.395 + 2.3646 * error, abs=1e-3)


def test_a_spike_is_no_noise() -> None:
    """One trial of ten takes ten times as long: Welch's interval alone, or a hull with it, would contain 1."""
    steps = [0.01 * step for step in (-3, 2, -1, 4, 0, -2, 3, 1, -4)]
    found = compare_ratio([exp(0.1 + step) for step in [*steps, 2.3]], [exp(-step) for step in [*steps, 0.0]])
    assert found.ratio == pytest.approx(exp(0.1), rel=0.01)
    assert found.p_value == pytest.approx(2 / 184756)
    # The 24th smallest and largest of 100 differences.
    assert [log(end) for end in ends(found)] == pytest.approx([0.08, 0.14], abs=0.011)


def test_a_noisier_side_makes_no_more_false_differences_in_a_family() -> None:
    """At the level of the first of twelve comparisons; ranks alone are wrong in 1 % instead of 0.4 %."""
    generator, rounds = random.Random(5), 4000
    false = 0
    for _ in range(rounds):
        a, b = ([exp(generator.gauss(0, scale)) for _ in range(10)] for scale in (0.15, 0.03))
        false += compare_ratio(a, b, coverage=1 - 0.05 / 12).differs is True
    assert false / rounds <= 0.05 / 12 + 3 * 0.00102


def test_a_single_value_does_not_show_its_noise() -> None:
    found = compare_ratio([1.0], [2.0 + number / 100 for number in range(60)])
    assert (found.interval, found.p_value) == (None, 1.0)


def test_four_against_four_is_the_least_for_95_percent() -> None:
    assert (pairs_needed(0.95), pairs_needed(0.99)) == (4, 5)
    enough = compare_ratio([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    assert known(enough.interval).coverage == pytest.approx(1 - 2 / 70)
    too_few = compare_ratio([1.0, 1.0, 2.0], [1.0, 1.0, 2.0])
    assert (too_few.interval, too_few.reason, too_few.needed) == (None, Reason.TOO_FEW_SAMPLES, 4)
    assert too_few.differs is None
    assert too_few.ratio == 1.0


def test_where_ranks_cannot_give_the_level_means_are_compared() -> None:
    """Logarithms −h, 0, h and 1 − h, 1, 1 + h: standard errors h/√3, 4 degrees of freedom, t(97.5 %) = 2.7764."""
    a, b = ([exp(middle + step) for step in (-0.1, 0.0, 0.1)] for middle in (1.0, 0.0))
    found = compare_ratio(a, b)
    assert found.method is ComparisonMethod.WELCH_T
    assert found.ratio == pytest.approx(exp(1))
    half = 2.7764 * 0.1 * sqrt(2 / 3)
    assert [log(end) for end in ends(found)] == pytest.approx([1 - half, 1 + half], abs=1e-4)
    assert found.p_value == pytest.approx(2.552e-4, rel=1e-3)
    assert found.p_if_correlated == pytest.approx(two_sided_tail(1 / 0.1 / sqrt(2 / 3) / CORRELATED, 4))
    many = [[exp(0.1 * step + side) for step in range(5)] for side in (1, 0)]
    assert compare_ratio(*many, among=6).method is ComparisonMethod.RANK_SUM  # 6 · 2 / C(10, 5) is 0.048
    assert compare_ratio(*many, among=7).method is ComparisonMethod.WELCH_T
    assert compare_ratio([1.0, 2.0], [1.0, 2.0, 3.0]).interval is None


def test_one_sample_can_make_up_for_the_other() -> None:
    assert compare_ratio([1.0, 2.0, 3.0], [float(i) for i in range(1, 8)]).interval is not None  # 2/120
    assert compare_ratio([1.0], [float(i) for i in range(1, 30)]).interval is None  # 2/30


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([], [1.0], Reason.NO_SAMPLES),
        ([1.0], [], Reason.NO_SAMPLES),
        ([0.0, 1.0], [1.0, 2.0], Reason.NOT_POSITIVE),
        ([1.0, 2.0], [1.0, -2.0], Reason.NOT_POSITIVE),
        ([nan], [1.0], Reason.NOT_FINITE),
        ([1.0], [inf], Reason.NOT_FINITE),
    ],
)
def test_what_has_no_ratio_is_an_answer(a: list[float], b: list[float], reason: Reason) -> None:
    found = compare_ratio(a, b)
    assert (found.reason, found.ratio, found.interval, found.p_value) == (reason, None, None, None)


@given(SAMPLES, SAMPLES)
def test_swapping_the_samples_inverts_the_ratio(a: list[float], b: list[float]) -> None:
    there, back = compare_ratio(a, b), compare_ratio(b, a)
    assert known(there.ratio) == pytest.approx(1 / known(back.ratio))
    assert there.p_value == pytest.approx(back.p_value)
    assert (there.interval is None) == (back.interval is None)
    if there.interval and back.interval:
        assert there.interval.low == pytest.approx(1 / back.interval.high)
        assert there.interval.high == pytest.approx(1 / back.interval.low)


@given(SAMPLES, SAMPLES, st.sampled_from([0.125, 4.0, 1024.0]))
def test_scaling_one_sample_scales_everything(a: list[float], b: list[float], factor: float) -> None:
    plain, scaled = compare_ratio(a, b), compare_ratio([value * factor for value in a], b)
    assert scaled.ratio == pytest.approx(known(plain.ratio) * factor)
    if plain.interval and scaled.interval:
        assert scaled.interval.low == pytest.approx(plain.interval.low * factor)
        assert scaled.interval.high == pytest.approx(plain.interval.high * factor)


@given(SAMPLES, SAMPLES, st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_and_test_agree_and_the_estimate_lies_inside(
    a: list[float], b: list[float], coverage: float
) -> None:
    found = compare_ratio(a, b, coverage=coverage)
    if found.interval is None:
        assert known(found.p_value) > 1 - coverage
    else:
        assert found.interval.low <= known(found.ratio) * (1 + 1e-12)
        assert known(found.ratio) <= found.interval.high * (1 + 1e-12)
        assert found.interval.coverage >= coverage
        assert found.differs == (known(found.p_value) <= 1 - coverage + 1e-12)


def test_stated_coverage_is_the_simulated_one() -> None:
    generator = random.Random(20261120)
    rounds, hits = 20_000, 0
    for _ in range(rounds):
        a = [1.5 * exp(generator.gauss(0, 0.2)) for _ in range(5)]
        b = [exp(generator.gauss(0, 0.2)) for _ in range(5)]
        low, high = ends(compare_ratio(a, b))
        hits += low <= 1.5 <= high
    # the standard error of the simulation is 0.0012
    assert hits / rounds == pytest.approx(1 - 2 * 4 / 252, abs=0.005)


def test_a_widened_interval_agrees_with_its_test() -> None:
    """Also where sides are of unequal size."""
    generator, common = random.Random(4), (CommonCorrelation(lag1=0.5, values=200),) * 2
    shown = 0
    for size in (8, 20):
        for _ in range(200):
            a = [1.03 * exp(generator.gauss(0, 0.03)) for _ in range(8)]
            b = [exp(generator.gauss(0, 0.03)) for _ in range(size)]
            plain, wide = compare_ratio(a, b), compare_ratio(a, b, common=common)
            assert wide.ratio == plain.ratio
            assert wide.widening > sqrt(3)
            assert wide.correlation_known
            low, high = map(log, ends(wide))
            assert [low < log(ends(plain)[0]), high > log(ends(plain)[1])] == [
                wide.widening > plain.widening
            ] * 2
            assert plain.p_if_correlated is not None
            assert wide.differs == (known(wide.p_value) <= 0.05)
            shown += plain.differs is True and not wide.differs
    assert shown > 50


def test_an_interval_that_says_nothing_has_ends_that_are_numbers() -> None:
    """At the level of a large family, two values against three have a t quantile of millions."""
    found = compare_ratio([100.0, 210.0], [100.0, 150.0, 330.0], coverage=1 - 1e-7)
    assert found.interval is None or 0 < found.interval.low < found.interval.high < inf
    wide = of_logarithms(-1e6, 1e6, coverage=0.95)
    assert 0 < wide.low < 1e-100
    assert 1e100 < wide.high < inf
