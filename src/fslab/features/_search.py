"""Searches: places of a byte string on a device, the largest number that works, and whether a call does."""

import os
from collections.abc import Callable, Collection, Iterator

WINDOW = 8 << 20


def places(descriptor: int, needle: bytes) -> Iterator[int]:
    """Yield the offset of every occurrence, also of those that overlap."""
    overlap = len(needle) - 1
    offset, tail = 0, b""
    while block := os.pread(descriptor, WINDOW, offset):
        window, start = tail + block, offset - len(tail)
        at = window.find(needle)
        while at >= 0:
            yield start + at
            at = window.find(needle, at + 1)
        tail, offset = window[-overlap:], offset + len(block)


def worked(refusals: Collection[int], call: Callable[..., object], *arguments: object) -> bool:
    """Return whether a call succeeds. Other errors than these (errno) are raised."""
    try:
        call(*arguments)
    except OSError as error:
        if error.errno in refusals:
            return False
        raise
    return True


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
