"""Tests of corrections for the number of tests: by hand, against scipy, and general properties."""

from __future__ import annotations

from itertools import combinations

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from fslab.stats.multiple_testing import benjamini_hochberg, holm, most_true


def test_benjamini_hochberg_by_hand() -> None:
    """Sorted and times 4/rank: 0.02, 0.02, 0.04, 0.04; each the smallest of its own and those above."""
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert benjamini_hochberg([]) == []
    assert benjamini_hochberg([0.9, 0.8]) == [0.9, 0.9]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_benjamini_hochberg_is_scipy_s(p_values: list[float]) -> None:
    assert benjamini_hochberg(p_values) == pytest.approx(list(scipy.stats.false_discovery_control(p_values)))


def test_holm_by_hand() -> None:
    # In ascending order: 0.005·4, 0.01·3, 0.03·2, and 0.04·1, which is raised to the value before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(min_value=0, max_value=1), max_size=12))
def test_holm_lies_between_no_correction_and_bonferroni(p_values: list[float]) -> None:
    for plain, adjusted in zip(p_values, holm(p_values), strict=True):
        assert plain <= adjusted <= min(1.0, plain * len(p_values))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (2, [1]),
        (3, [3, 1, 1]),
        (4, [6, 3, 3, 3, 2, 1]),
        (5, [10, 6, 6, 6, 6, 4, 4, 3, 2, 1]),
        (6, [15, 10, 10, 10, 10, 10, 7, 7, 7, 6, 4, 4, 3, 2, 1]),
    ],
)
def test_all_pairs_of_some_items(items: int, expected: list[int]) -> None:
    """The values are those of Shaffer (1986), table 1."""
    assert most_true([*combinations(range(items), 2)]) == expected


def test_groups_that_are_not_compared_with_each_other() -> None:
    """Of 1, 2, 3 can 3, 1 or no pair be equal, and 4 can equal 5 or not: together 4, 3, 2, 1 or none."""
    assert most_true([(1, 2), (1, 3), (2, 3), (4, 5)]) == [4, 3, 2, 1]


@pytest.mark.parametrize(
    "pairs", [[("B", "A")] * 3, [(1, 2), (2, 3)], [(1, 2), (3, 4), (5, 6)], [(1, 2), (1, 3), (2, 1)], []]
)
def test_without_all_pairs_all_others_can_be_true(pairs: list[tuple[object, object]]) -> None:
    assert most_true(pairs) == list(range(len(pairs), 0, -1))


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_what_depends_on_each_other_is_corrected_less_but_never_below_no_correction(
    p_values: list[float],
) -> None:
    related = holm(p_values, most_true([*combinations(range(4), 2)]))
    for plain, adjusted, independent in zip(p_values, related, holm(p_values), strict=True):
        assert plain <= adjusted <= independent


def test_the_second_of_three_needs_no_correction() -> None:
    assert holm([0.01, 0.04, 0.5], [3, 1, 1]) == pytest.approx([0.03, 0.04, 0.5])
