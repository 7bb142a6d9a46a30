"""Retries while the fleet's store is unavailable, which may take hours. Only the caller waits; results are kept."""

import time
from collections.abc import Callable
from typing import TypeVar

from fslab.errors import StoreLostError

LONGEST_WAIT_S = 10.0
Result = TypeVar("Result")


def patiently(do: Callable[[], Result], tell: Callable[[str], object]) -> Result:
    """Call ``do`` until the store is available, and return its result. ``tell`` gets one message."""
    wait_s, told = 1.0, False
    while True:
        try:
            return do()
        except StoreLostError as error:
            if not told:
                tell(f"waiting for the fleet's store: {error.what}")
            told = True
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, LONGEST_WAIT_S)
