"""Finds the largest number that still works, by doubling steps and halving them."""

from collections.abc import Callable


def largest(works: Callable[[int], bool], *, low: int, high: int) -> int | None:
    """The largest number from ``low`` to ``high`` that works, where all below a working one work; None if none."""
    if not works(low):
        return None
    if works(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low
