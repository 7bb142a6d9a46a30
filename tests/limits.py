"""The time limits of tests. They are long enough for a busy machine; only failures reach them.

``LIMIT_S``: for a condition, or a command that does one thing. ``RUN_LIMIT_S``: for what runs trials or crash states.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LIMIT_S = 300.0
RUN_LIMIT_S = 3600.0


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until the condition is true. Fail after LIMIT_S seconds.

    Asking takes at most a tenth of the time: what asks a database would else keep a CPU busy.
    """
    deadline = time.monotonic() + LIMIT_S
    while True:
        began = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < deadline, "did not come about"
        time.sleep(min(max(0.02, 9 * (now - began)), 1))


def ran(argv: Sequence[str | Path], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, within LIMIT_S seconds. ``more``: of subprocess.run."""
    fields = {"capture_output": True, "text": True, "timeout": LIMIT_S, "check": False, **more}
    return subprocess.run(argv, **fields)  # noqa: PLW1510 - in the fields
