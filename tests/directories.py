"""What keeps tests apart that run side by side: directories of their own, and turns at what the machine has once."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# "fslab-test-PID-…": whatever a session that was killed left is found by its name, and removed by the next one.
SESSION = "fslab-test-"

_LOCK = Path(tempfile.gettempdir()) / f"fslab-tests-{os.geteuid()}.lock"
_GATE = _LOCK.with_suffix(".gate")


def set_directories(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Let fslab and all that it starts keep everything below ``home``."""
    for variable, name in (
        ("XDG_STATE_HOME", "state"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_RUNTIME_DIR", "run"),
        ("FSLAB_RUNTIME_DIR", "fslab"),
        ("XDG_CACHE_HOME", "cache"),
    ):
        patch.setenv(variable, str(home / name))
    for variable in ("FSLAB_STORE", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        patch.delenv(variable, raising=False)


@contextmanager
def sharing(*, alone: bool = False) -> Iterator[None]:
    """Measure beside others, or ``alone``: while no other test measures, in whichever session."""
    with _LOCK.open("a") as lock:
        with _GATE.open("a") as gate:  # first come, first served: who waits to be alone holds the others up
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
