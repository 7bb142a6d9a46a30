"""Tests of ranking stacks, with ties that are not transitive."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from fslab.analysis.table_rows import Rank, rank
from fslab.units import Direction

VALUES = {"ext4": 80.0, "xfs": 120.0, "btrfs": 79.0}
LABELS = ["a", "b", "c", "d", "e"]


def describe(places: tuple[Rank, ...]) -> str:
    return " · ".join(
        f"{place.rank}.{'=' * (len(place.stacks) > 1)} {', '.join(place.stacks)}" for place in places
    )


def test_one_ahead_of_two_alike() -> None:
    winners = {("ext4", "xfs"): "xfs", ("btrfs", "xfs"): "xfs", ("ext4", "btrfs"): None}
    places = rank(VALUES, winners, better=Direction.HIGHER)
    assert describe(places) == "1. xfs · 2.= ext4, btrfs"
    assert [len(place.stacks) for place in places] == [1, 2]


def test_places_count_on_after_a_tie() -> None:
    winners = {("xfs", "ext4"): None, ("xfs", "btrfs"): "xfs", ("ext4", "btrfs"): "ext4"}
    assert describe(rank(VALUES, winners, better=Direction.HIGHER)) == "1.= xfs, ext4 · 3. btrfs"


def test_lower_is_better() -> None:
    winners = {pair: min(pair, key=VALUES.__getitem__) for pair in combinations(VALUES, 2)}
    assert describe(rank(VALUES, winners, better=Direction.LOWER)) == "1. btrfs · 2. ext4 · 3. xfs"


def test_alike_is_not_transitive_and_that_is_reported() -> None:
    winners = {("xfs", "ext4"): None, ("ext4", "btrfs"): None, ("xfs", "btrfs"): "xfs"}
    (place,) = rank(VALUES, winners, better=Direction.HIGHER)
    assert place == Rank(rank=1, stacks=("xfs", "ext4", "btrfs"), ahead=(("xfs", "btrfs"),))


def test_a_circle_is_one_place() -> None:
    winners = {("xfs", "ext4"): "xfs", ("ext4", "btrfs"): "ext4", ("btrfs", "xfs"): "btrfs"}
    (place,) = rank(VALUES, winners, better=Direction.HIGHER)
    assert set(place.ahead) == {("xfs", "ext4"), ("ext4", "btrfs"), ("btrfs", "xfs")}


def test_the_comparison_decides_not_the_value() -> None:
    # The comparison by block shows ext4 ahead, although its median is lower.
    places = rank({"xfs": 101.0, "ext4": 100.0}, {("xfs", "ext4"): "ext4"}, better=Direction.HIGHER)
    assert describe(places) == "1. ext4 · 2. xfs"


def test_what_was_not_compared_is_not_told_apart() -> None:
    assert describe(rank(VALUES, {}, better=Direction.HIGHER)) == "1.= xfs, ext4, btrfs"
    assert rank({}, {}, better=Direction.HIGHER) == ()


PAIRS = [*combinations(LABELS, 2)]


@given(st.lists(st.sampled_from([0, 1, None]), min_size=len(PAIRS), max_size=len(PAIRS)))
def test_places_say_what_the_pairs_say(picks: list[int | None]) -> None:
    winners = {pair: None if pick is None else pair[pick] for pair, pick in zip(PAIRS, picks, strict=True)}
    places = rank(dict.fromkeys(LABELS, 1.0), winners, better=Direction.HIGHER)
    assert sorted(label for place in places for label in place.stacks) == LABELS
    number = {label: place.rank for place in places for label in place.stacks}
    for pair in PAIRS:
        winner = winners[pair]
        if number[pair[0]] != number[pair[1]]:
            assert winner == min(pair, key=number.__getitem__)
    named = {frozenset(pair) for place in places for pair in place.ahead}
    tied = {frozenset(pair) for pair in PAIRS if number[pair[0]] == number[pair[1]]}
    assert named == {pair for pair in tied if winners[tuple(sorted(pair))] is not None}  # type: ignore[index]
