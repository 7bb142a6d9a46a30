"""Finds a byte string on a device."""

import os
from collections.abc import Iterator

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
