"""Isolates tests that run in parallel: separate directories, and a lock for what the machine has only once."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Directories are named fslab-test-PID-…, so that a session can find and remove those of a killed session.
SESSION = "fslab-test-"

_LOCK = Path(tempfile.gettempdir()) / f"fslab-tests-{os.geteuid()}.lock"
_GATE = _LOCK.with_suffix(".gate")


def set_directories(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Set the environment so that fslab and its child processes keep all their files below ``home``, and temporary ones
    beside it: what others have left is removed there.

    Also unset variables that would change the store or the output.
    """
    for variable, name in (
        ("XDG_STATE_HOME", "state"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_RUNTIME_DIR", "run"),
        ("FSLAB_RUNTIME_DIR", ""),
        ("XDG_CACHE_HOME", "cache"),
    ):
        patch.setenv(variable, str(home / name))
    temporary = home.with_name(f"{home.name}-t")
    temporary.mkdir(mode=0o700, exist_ok=True)
    patch.setenv("TMPDIR", str(temporary))
    patch.setattr(tempfile, "tempdir", str(temporary))
    for variable in ("FSLAB_STORE", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        patch.delenv(variable, raising=False)


@contextmanager
def sharing(*, alone: bool = False) -> Iterator[None]:
    """Hold a lock while a test measures: shared, or exclusive (``alone``) among all sessions of this user."""
    with _LOCK.open("a") as lock:
        # First come, first served: while a test waits for the exclusive lock, it holds the gate, and later tests queue.
        with _GATE.open("a") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def once(factory: pytest.TempPathFactory, worker: str, name: str, make: Callable[[Path], object]) -> Path:
    """Return a directory that ``make`` has filled, once per session for all workers."""
    own = factory.getbasetemp()
    directory = (own if worker == "master" else own.parent) / name
    with directory.with_suffix(".lock").open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not directory.exists():
            work = directory.with_suffix(".work")
            work.mkdir(exist_ok=True)
            make(work)
            work.rename(directory)
    return directory
