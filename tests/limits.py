"""The time limits of tests. They are long enough for a busy machine; only failures reach them.

``LIMIT_S``: for a condition, or a command that does one thing. ``RUN_LIMIT_S``: for what runs trials or crash states.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 300.0
RUN_LIMIT_S = 3600.0


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until the condition is true. Fail after LIMIT_S seconds.

    Asking takes at most a fifth of the time: what asks a database would else keep a CPU busy.
    """
    deadline = time.monotonic() + LIMIT_S
    while True:
        began = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < deadline, "did not come about"
        time.sleep(min(max(0.02, 4 * (now - began)), 1))
