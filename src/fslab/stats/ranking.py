"""Ranks items that are compared in pairs: which places they share, and which of them are not shown to differ.

Pure functions; they must not know what the items are. That is not transitive: a may not be shown to differ
from b and b from c although a is better than c. The result shows such pairs (``ahead``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fslab.units import Direction

Winners = Mapping[tuple[str, str], str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankPlace:
    """A place and the items that share it. ``ahead``: pairs of these (better, worse) with one shown to be better."""

    rank: int
    labels: tuple[str, ...]
    ahead: tuple[tuple[str, str], ...] = ()


def rank(values: Mapping[str, float], winners: Winners, *, better: Direction) -> tuple[RankPlace, ...]:
    """Return places as in sports: items that share a place count, so that the next place is lower (1, 2=, 2=, 4).

    ``winners`` maps a pair, in either order, to the item shown to be better, or None. A missing pair counts as
    undecided. A new place begins only where every item above is shown to be better than every item below. So
    items that are linked by a chain of undecided pairs share a place, and the decided pairs among them are in
    ``ahead``. Order within a place: wins minus losses, then the better value.
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
