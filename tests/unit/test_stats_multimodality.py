"""Tests of the dip test for several modes: known values, p-values of uniform samples, and samples with one mode."""

from __future__ import annotations

import random
from itertools import pairwise
from math import inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made import known

from fslab.stats.multimodality import _TABLE, dip, dip_statistic

# The data set statfaculty of R's diptest, from Hartigan & Hartigan 1985: dip 0.0595238, p 0.10.
FACULTY = [
    30, 33, 35, 36, 37, 37, 39, 39, 39, 39, 39, 40, 40, 40, 40, 41, 42, 43, 43, 43, 44, 44, 45, 45, 46, 47, 47, 48,
    48, 48, 49, 50, 50, 51, 52, 52, 53, 53, 53, 53, 53, 54, 54, 57, 57, 59, 60, 60, 60, 61, 61, 61, 61, 62, 62, 62,
    62, 63, 66, 70, 72, 72, 72,
]  # fmt: skip


def test_published_example_of_the_hartigans() -> None:
    assert dip_statistic([float(value) for value in FACULTY]) == pytest.approx(0.0595238, abs=1e-7)


def test_evenly_spaced_values_dip_least() -> None:
    assert dip_statistic([float(value) for value in range(10)]) == pytest.approx(1 / 20)


def test_two_points_dip_most() -> None:
    assert dip_statistic([0.0] * 4 + [1.0] * 4) == pytest.approx(1 / 4)
    # The smaller group has 2 of 8 values; the dip is half of this share.
    assert dip_statistic([0.0] * 6 + [1.0] * 2) == pytest.approx(1 / 8)


def test_one_point_however_often_does_not_dip() -> None:
    assert dip_statistic([1.0, 2.0, *[3.0] * 20, 4.0, 5.0]) == pytest.approx(1 / 48)


def test_two_levels_are_seen_and_named() -> None:
    low, high = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0], [140.0, 141.0, 142.0, 143.0]
    found = known(dip([high[0], *low, *high[1:]]))
    assert found.p_value <= 0.01
    assert found.levels == (102.5, 141.5)


def test_a_skewed_sample_has_one_mode() -> None:
    found = known(dip([2.0**power for power in range(12)]))
    assert found.p_value == 1.0


@pytest.mark.parametrize(
    "values",
    [[], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.0, 2.0] * 10, [*map(float, range(9)), inf]],
    ids=["none", "seven", "coarse steps: only two different values", "not finite"],
)
def test_too_little_is_no_answer(values: list[float]) -> None:
    assert dip(values) is None


@pytest.mark.parametrize("size", [8, 13, 50])
def test_uniform_samples_dip_as_the_table_says(size: int) -> None:
    generator, rounds = random.Random(size), 3000
    tests = filter(None, (dip([generator.random() for _ in range(size)]) for _ in range(rounds)))
    found = [each.p_value for each in tests]
    assert sum(p_value <= 0.1 for p_value in found) / rounds == pytest.approx(0.1, abs=0.017)
    assert sum(p_value <= 0.05 for p_value in found) / rounds == pytest.approx(0.05, abs=0.012)
    assert sum(p_value <= 0.01 for p_value in found) / rounds == pytest.approx(0.01, abs=0.006)


@pytest.mark.parametrize("level", range(4))
def test_the_limits_rise_with_the_size_and_ever_less(level: int) -> None:
    """A wrong digit is a bend. The limits of an error of 0.1 % are known to ± 1 %."""
    points = [(log(size), limits[level]) for size, limits in _TABLE.items()]
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(points)]
    assert all(0 < slope < 0.13 for slope in slopes)


@given(st.lists(st.integers(-1000, 1000).map(float), min_size=2, max_size=30))
def test_the_dip_keeps_its_bounds_and_its_mirror_image(values: list[float]) -> None:
    ordered = sorted(values)
    found = dip_statistic(ordered)
    assert 1 / (2 * len(values)) <= found <= 0.25
    assert found == pytest.approx(dip_statistic([-value for value in reversed(ordered)]))
