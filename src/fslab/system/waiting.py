"""Waits, with a limit, until something is so that only asking again and again shows."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], limit_s: float, every_s: float = 0.02) -> T:
    """Return what the condition returns as soon as that is true; after ``limit_s``, whatever it returns then."""
    deadline = time.monotonic() + limit_s
    while True:
        late = (
            time.monotonic() >= deadline
        )  # before the question: on a busy machine, this program may stand still
        if (found := condition()) or late:
            return found
        time.sleep(every_s)
