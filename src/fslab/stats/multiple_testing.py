"""Corrects p-values for the number of tests: Holm's and Benjamini and Hochberg's adjustments. scipy has the latter."""

from collections.abc import Hashable, Sequence
from functools import cache


def holm(p_values: Sequence[float], most_true: Sequence[int] | None = None) -> list[float]:
    """Return adjusted p-values in the given order.

    If all differences with an adjusted p-value ≤ α are accepted, the error rate of the whole family is at most α.
    ``most_true``: once none, one, two, … hypotheses are false, how many of the others can be true
    (:func:`most_true`); default: all. Source: Holm, Scand. J. Statist. 6 (1979) 65.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    factors = most_true or range(len(p_values), 0, -1)
    for factor, index in zip(factors, sorted(range(len(p_values)), key=p_values.__getitem__), strict=True):
        largest = max(largest, min(1.0, factor * p_values[index]))
        adjusted[index] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values in the given order.

    If all differences with an adjusted p-value ≤ α are accepted, at most a share α of them is expected to be false.
    Source: Benjamini & Hochberg, J. R. Statist. Soc. B 57 (1995) 289.
    """
    adjusted = [0.0] * len(p_values)
    least = 1.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, index in reversed(list(enumerate(order, 1))):
        least = min(least, p_values[index] * len(p_values) / rank)
        adjusted[index] = least
    return adjusted


def most_true(pairs: Sequence[tuple[Hashable, Hashable]]) -> list[int]:
    """Return for each number of false hypotheses, from 0 on, how many of the others can be true at most.

    ``pairs``: the two items of each hypothesis "these are equal". If a = b and b = c, then a = c: once one of the three
    comparisons of three items is known to be false, only one of the others can be true. This counts where all pairs of
    some items are compared, each once; otherwise all others can be true. Source: Shaffer, J. Am. Stat. Assoc. 81 (1986)
    826, method S1.
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
