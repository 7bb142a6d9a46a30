"""The time limit for conditions that tests wait for. It is long enough for a busy machine; only failures reach it."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 300.0


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until the condition is true. Fail after LIMIT_S seconds."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.02)
