"""Several things compared in pairs: which places they share, and which of them cannot be told apart.

Pure functions; they must not know what the things are. "Cannot be told apart" is not transitive: a may be like b
and b like c while a is ahead of c; nothing here hides that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from fslab.units import Direction

Winners = Mapping[tuple[str, str], str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankPlace:
    """A place and those who share it. ``ahead``: pairs among them (first, second) that can be told apart."""

    rank: int
    labels: tuple[str, ...]
    ahead: tuple[tuple[str, str], ...] = ()

    @property
    def tied(self) -> bool:
        """Whether several share the place."""
        return len(self.labels) > 1


def rank(values: Mapping[str, float], winners: Winners, *, better: Direction) -> tuple[RankPlace, ...]:
    """Places as in sports: those who share one count, the next is as many further down (1, 2=, 2=, 4).

    ``winners`` maps a pair, in either order, to the one shown better, or None; a pair that is missing cannot be
    told apart. Two places are parted only where everyone above is shown better than everyone below. So
    those who hang together by a chain of undecided pairs share a place, and the pairs among them that are
    decided stand in ``ahead``. Order within a place: more won than lost, then the better value.
    """
    order = _order(values, winners, better)
    places: list[RankPlace] = []
    begin = 0
    for end in range(1, len(order) + 1):
        above, below = order[begin:end], order[end:]
        if all(_winner(winners, x, y) == x for x in above for y in below):
            places.append(RankPlace(rank=begin + 1, labels=tuple(above), ahead=_ahead(above, winners)))
            begin = end
    return tuple(places)


def describe(places: Sequence[RankPlace]) -> str:
    """``1. XFS · 2.= ext4, btrfs``."""
    return " · ".join(
        f"{place.rank}.{'=' if place.tied else ''} {', '.join(place.labels)}" for place in places
    )


def letters(order: Sequence[str], winners: Winners) -> dict[str, str]:
    """A compact letter display: two that share a letter cannot be told apart, two that share none can.

    Insert and absorb: begin with one group of all; for each decided pair, replace each group that holds both
    by itself without the one and itself without the other; drop groups inside others.
    Source: Piepho, J. Comput. Graph. Stat. 13 (2004) 456.
    """
    groups = [frozenset(order)] if order else []
    for index, one in enumerate(order):
        for other in order[index + 1 :]:
            if _winner(winners, one, other) is not None:
                groups = _split(groups, one, other)
    groups.sort(key=lambda group: sorted(order.index(label) for label in group))
    return {
        label: "".join(_letter(number) for number, group in enumerate(groups) if label in group)
        for label in order
    }


def _order(values: Mapping[str, float], winners: Winners, better: Direction) -> list[str]:
    sign = -1 if better is Direction.LOWER else 1

    def balance(label: str) -> int:
        decided = [winner for other in values if (winner := _winner(winners, label, other)) is not None]
        return sum(1 if winner == label else -1 for winner in decided)

    return sorted(values, key=lambda label: (balance(label), sign * values[label]), reverse=True)


def _winner(winners: Winners, one: str, other: str) -> str | None:
    return winners.get((one, other), winners.get((other, one)))


def _ahead(labels: Sequence[str], winners: Winners) -> tuple[tuple[str, str], ...]:
    found = []
    for index, one in enumerate(labels):
        for other in labels[index + 1 :]:
            winner = _winner(winners, one, other)
            if winner is not None:
                found.append((winner, other if winner == one else one))
    return tuple(found)


def _split(groups: Sequence[frozenset[str]], one: str, other: str) -> list[frozenset[str]]:
    parts = {
        part
        for group in groups
        for part in ((group - {one}, group - {other}) if {one, other} <= group else (group,))
    }
    return [part for part in parts if not any(part < larger for larger in parts)]


def _letter(number: int) -> str:
    """a … z, then a2 … z2 and so on."""
    turn, index = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[index] + (str(turn + 1) if turn else "")
