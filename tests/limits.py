"""How long a test waits for what must come: longer than any busy machine needs; only a test that fails waits."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 300.0


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.02)
