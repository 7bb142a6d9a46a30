"""Tests of corrections for the number of tests: by hand, against scipy, and general properties."""

from __future__ import annotations

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from fslab.stats.multiple_testing import benjamini_hochberg, holm


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
