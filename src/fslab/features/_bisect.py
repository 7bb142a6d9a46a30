"""Finds the largest number that works, by bisection."""

from collections.abc import Callable


def largest(works: Callable[[int], bool], *, low: int, high: int) -> int | None:
    """Return the largest number from ``low`` to ``high`` that works; None if ``low`` does not work.

    If a number works, all smaller ones must work too.
    """
    if not works(low):
        return None
    if works(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low
