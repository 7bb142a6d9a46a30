"""The signed-rank interval: a published example, printed tables, enumeration, and what symmetry demands."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fslab.stats.signed_rank import lower_tail, signed_rank, signed_rank_cut, walsh_averages

# Hollander & Wolfe 1999, table 3.1 (Hamilton depression scale before and after tranquilizer therapy). Their
# answers: T+ = 40, one-sided p 0.0195 (so 0.0391 two-sided), estimate 0.46, 96.1 % interval 0.010 … 0.786.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]

DIFFERENCES = st.lists(st.integers(min_value=-50, max_value=50).map(float), min_size=1, max_size=14)


def test_published_example_of_hollander_and_wolfe() -> None:
    found = signed_rank([x - y for x, y in zip(BEFORE, AFTER, strict=True)], coverage=0.95)
    assert found is not None
    assert found.p_value == pytest.approx(0.0391, abs=5e-5)
    assert found.center == pytest.approx(0.46, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((0.010, 0.786))
    assert found.coverage == pytest.approx(0.961, abs=5e-4)


# Largest T significant at 5 % two-sided, as printed in every table of it (Siegel & Castellan 1988, table H).
@pytest.mark.parametrize(
    ("size", "critical"), [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (15, 25), (20, 52), (25, 89)]
)
def test_critical_values_of_the_printed_table(size: int, critical: int) -> None:
    assert signed_rank_cut(size, 0.95) == critical + 1


def test_distribution_is_that_of_all_signs() -> None:
    sums = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product([0, 1], repeat=5)]
    for value in range(16):
        assert lower_tail(5, value) == pytest.approx(sum(each <= value for each in sums) / 32)


def test_five_differences_are_too_few_for_95_percent() -> None:
    assert signed_rank([1.0, 2.0, 3.0, 4.0, 5.0], coverage=0.95) is None  # 1 - 2/32


def test_walsh_averages_by_hand() -> None:
    assert walsh_averages([1.0, 4.0, 2.0]) == [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]


@given(DIFFERENCES, st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_and_test_agree_and_the_centre_lies_inside(
    differences: list[float], coverage: float
) -> None:
    found = signed_rank(differences, coverage=coverage)
    assert (found is None) == (signed_rank_cut(len(differences), coverage) == 0)
    if found is not None:
        assert found.low <= found.center <= found.high
        assert found.coverage >= coverage
        assert (found.low > 0 or found.high < 0) == (found.p_value <= 1 - coverage + 1e-12)


@given(DIFFERENCES)
def test_the_other_way_round_everything_is_mirrored(differences: list[float]) -> None:
    there = signed_rank(differences, coverage=0.9)
    back = signed_rank([-value for value in differences], coverage=0.9)
    assert (there is None) == (back is None)
    if there is not None and back is not None:
        assert (there.low, there.high, there.p_value) == (-back.high, -back.low, back.p_value)
