"""Orders the tests of a parallel session so that few workers wait for each other. Within its parts the order stays.

A test that is ``alone`` waits for all tests that measure, and all later ones wait for it. Therefore one worker begins
with those, while the others run tests that measure nothing; what measures comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pytest

MEASURE = {"root", "e2e", "browser"}  # directories of tests


def measures(item: pytest.Item) -> bool:
    """Return whether a test must not run beside one that is ``alone``."""
    return item.path.parent.name in MEASURE and item.get_closest_marker("unaffected") is None


def arranged(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests for so many workers. pytest-xdist gives each of them as many successive tests (worksteal)."""
    alone = [item for item in items if item.get_closest_marker("alone")]
    unaffected = [item for item in items if item.get_closest_marker("unaffected")]
    last = [item for item in items if measures(item) and item not in alone]
    taken = {*alone, *unaffected, *last}
    rest = iter([item for item in items if item not in taken])
    begins = [alone, unaffected, *([] for _ in range(workers))]
    found: list[pytest.Item] = []
    for worker in range(workers):
        begin = begins[worker] if workers > 1 else alone + unaffected
        # Those of a module stay together, because they share a browser, pages or data, which each worker makes anew.
        end = last[len(last) * worker // workers : len(last) * (worker + 1) // workers]
        size = (len(items) - len(found)) // (workers - worker)
        middle = islice(rest, max(0, size - len(begin) - len(end)))
        found += [*begin, *middle, *end]
    return [*found, *rest]
