"""Corrects p-values for the number of tests: Holm's and Benjamini and Hochberg's adjustments. Pure functions.

scipy has only the latter.
"""

from collections.abc import Sequence


def holm(p_values: Sequence[float], most_true: Sequence[int] | None = None) -> list[float]:
    """Return adjusted p-values in the given order.

    If all differences with an adjusted p-value ≤ α are accepted, the error rate of the whole family is at most α.
    ``most_true``: once none, one, two, … hypotheses are false, how many of the others can be true (``all_pairs``);
    default: all. Source: Holm, Scand. J. Statist. 6 (1979) 65.
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
