"""Orders the tests of a parallel session so that few workers wait for each other. Within its parts the order stays.

A test that is ``alone`` waits for all tests that measure, and all later ones wait for it. Therefore one worker begins
with those, while the others run tests that measure nothing; what measures comes last.

Tests that need a program which each worker starts once (PostgreSQL's server, Chromium) are in one worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pytest

MEASURE = {"root", "e2e", "browser"}  # directories of tests


def measures(item: pytest.Item) -> bool:
    """Return whether a test must not run beside one that is ``alone``."""
    return item.path.parent.name in MEASURE and item.get_closest_marker("unaffected") is None


def arranged(items: Sequence[pytest.Item], workers: int) -> list[list[pytest.Item]]:
    """Return the tests of each worker, the same number for all. One that has run its own takes half of another's."""
    alone = [item for item in items if item.get_closest_marker("alone")]
    unaffected = [item for item in items if item.get_closest_marker("unaffected")]
    served = [item for item in items if item.path.parent.name == "store"]
    browsed = [item for item in items if item.path.parent.name == "browser"]
    last = [item for item in items if measures(item) and item not in {*alone, *browsed}]
    taken = {*alone, *unaffected, *served, *browsed, *last}
    rest = iter([item for item in items if item not in taken])
    begins: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for number, first in enumerate((alone, unaffected, served)):
        begins[number % workers] += first
    ends = [last[number::workers] for number in range(workers)]
    ends[-1] = browsed + ends[-1]
    found, left = [], len(items)
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        middle = islice(rest, max(0, left // (workers - number) - len(begin) - len(end)))
        found.append([*begin, *middle, *end])
        left -= len(found[-1])
    found[-1] += rest
    return found
