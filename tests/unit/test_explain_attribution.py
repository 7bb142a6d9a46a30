"""Tests of how a ratio is attributed to mechanisms. Powers of two, so that the shares can be calculated by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fslab.explain.attribution import attribute

NONE, A, B, AB = frozenset[str](), frozenset({"a"}), frozenset({"b"}), frozenset({"a", "b"})


def blocks(value: float, n: int = 5) -> dict[int, float]:
    return dict.fromkeys(range(n), value)


def test_independent_mechanisms_multiply() -> None:
    # without a 2 times as fast, without b 4 times, without both 8 times; the other stack is 16 times as fast
    found = attribute({NONE: blocks(1), A: blocks(2), B: blocks(4), AB: blocks(8)}, blocks(16))
    assert found is not None
    assert found.complete
    factors = (found.ratio.factor, found.shares["a"].factor, found.shares["b"].factor, found.rest.factor)
    assert factors == pytest.approx((16, 2, 4, 2))


def test_mechanisms_that_do_the_same_share_it() -> None:
    # switching off either one gives the whole factor of 16: each has half of the logarithm, a factor of 4
    found = attribute({NONE: blocks(1), A: blocks(16), B: blocks(16), AB: blocks(16)}, blocks(16))
    assert found is not None
    assert found.shares["a"].factor == pytest.approx(4)
    assert found.alone["a"].factor == pytest.approx(16)
    assert found.rest.factor == pytest.approx(1)


def test_without_all_combinations_interactions_are_in_the_rest() -> None:
    found = attribute({NONE: blocks(1), A: blocks(2), B: blocks(4)}, blocks(4))
    assert found is not None
    assert not found.complete
    assert found.rest.factor == pytest.approx(0.5), "2 × 4 × 0.5 = 4"


def test_a_switch_that_changes_nothing_is_told_apart_from_one_that_does() -> None:
    noise = (0.99, 1.01, 1.02, 0.98, 1.0)
    values = {
        NONE: dict(enumerate(noise)),
        A: dict(enumerate(reversed(noise))),
        B: {block: 3 * value for block, value in enumerate(noise)},
    }
    found = attribute(values, {block: 3 * value for block, value in enumerate(noise)})
    assert found is not None
    assert found.alone["a"].nothing
    assert found.alone["b"].nothing is False


def test_the_intervals_of_several_mechanisms_hold_together() -> None:
    noisy = dict(enumerate((1.0, 1.1, 0.95, 1.05, 0.9)))
    alone = attribute({NONE: blocks(1), A: noisy}, blocks(2))
    beside = attribute({NONE: blocks(1), A: noisy, B: blocks(1), AB: noisy}, blocks(2))
    assert alone is not None
    assert beside is not None
    one, both = alone.alone["a"], beside.alone["a"]
    assert one.factor == both.factor
    assert one.low is not None
    assert both.low is not None
    assert both.low < one.low
    assert alone.ratio == beside.ratio


def test_few_or_no_blocks() -> None:
    few = attribute({NONE: blocks(1, 3), A: blocks(2, 3)}, blocks(2, 3))
    assert few is not None
    assert few.shares["a"].low is None
    assert few.shares["a"].nothing is None
    assert attribute({NONE: {0: 1.0}, A: {1: 1.0}}, {0: 1.0}) is None
    assert attribute({NONE: {0: 0.0}}, {0: 1.0}) is None


@given(st.lists(st.lists(st.floats(0.1, 1e6), min_size=9, max_size=9), min_size=1, max_size=6))
def test_shares_and_rest_always_multiply_to_the_ratio(rows: list[list[float]]) -> None:
    sets = [frozenset(name for bit, name in enumerate("abc") if number >> bit & 1) for number in range(8)]
    slow = {off: {block: row[index] for block, row in enumerate(rows)} for index, off in enumerate(sets)}
    found = attribute(slow, {block: row[8] for block, row in enumerate(rows)})
    assert found is not None
    product = found.rest.factor
    for share in found.shares.values():
        product *= share.factor
    assert product == pytest.approx(found.ratio.factor, rel=1e-9)
