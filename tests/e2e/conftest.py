"""End-to-end tests run the program as a user does, in processes of its own, with a store of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 300.0  # on a busy machine; only a test that fails waits so long
FSLAB = Path(sys.executable).parent / "fslab"


class Fslab:
    """Runs fslab in the test's own directories."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd

    def __call__(
        self, *argv: object, code: int = 0, user: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end and check its exit code."""
        done = subprocess.run(
            [str(FSLAB), *map(str, argv)], capture_output=True, text=True, cwd=self.cwd, timeout=LIMIT_S, user=user,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    def json(self, *argv: object) -> Any:
        """What it prints, read as JSON."""
        return json.loads(self(*argv).stdout)

    def start(self, *argv: object) -> subprocess.Popen[str]:
        """Start it and let it run."""
        return subprocess.Popen(
            [str(FSLAB), *map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.cwd,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def trials(self) -> list[dict[str, Any]]:
        """All trials of the last campaign, as exported."""
        return list(self.json("export", "--format", "json"))


def end(process: subprocess.Popen[str], signum: signal.Signals) -> tuple[str, str]:
    """Send a signal to fslab alone (not to its tools) and wait for its end."""
    os.kill(process.pid, signum)
    return process.communicate(timeout=LIMIT_S)


def wait_for(condition: Callable[[], bool], *, within_s: float = LIMIT_S) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.02)


@pytest.fixture
def fslab(tmp_path: Path) -> Fslab:
    return Fslab(tmp_path)
