"""How many of the hypotheses "these two are equal" can be true together. Pure.

If a = b and b = c, then a = c: once one of the three comparisons of three items is known to be false, only one of the
others can be true. Source: Shaffer, J. Am. Stat. Assoc. 81 (1986) 826, method S1.
"""

from collections.abc import Hashable, Sequence
from functools import cache


def most_true(pairs: Sequence[tuple[Hashable, Hashable]]) -> list[int]:
    """Return for each number of false hypotheses, from 0 on, how many of the others can be true at most.

    ``pairs``: the two items of each hypothesis. These depend on each other where all pairs of some items are compared,
    each once; otherwise all others can be true.
    """
    groups = _groups(pairs)
    complete = sum(len(each) * (len(each) - 1) // 2 for each in groups) == len(pairs)
    if not complete or len({frozenset(pair) for pair in pairs}) < len(pairs):
        return list(range(len(pairs), 0, -1))
    possible = {0}
    for group in groups:
        possible = {one + other for one in possible for other in _equalities(len(group))}
    return [max(each for each in possible if each <= left) for left in range(len(pairs), 0, -1)]


def _groups(pairs: Sequence[tuple[Hashable, Hashable]]) -> list[set[Hashable]]:
    """Return the sets of items that comparisons connect."""
    found: list[set[Hashable]] = []
    for pair in pairs:
        touching = [each for each in found if not each.isdisjoint(pair)]
        found = [each for each in found if each.isdisjoint(pair)] + [set(pair).union(*touching)]
    return found


@cache
def _equalities(items: int) -> frozenset[int]:
    """Return how many pairs of items can be equal, over all ways in which items form groups of equals."""
    if items < 2:
        return frozenset({0})
    return frozenset(
        size * (size - 1) // 2 + rest for size in range(1, items + 1) for rest in _equalities(items - size)
    )
