"""Tests of how many hypotheses of equality can be true together; the values are those of Shaffer (1986), table 1."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fslab.stats.all_pairs import most_true
from fslab.stats.multiple_testing import holm


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
