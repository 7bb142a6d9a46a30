"""Fixtures for end-to-end tests: they run fslab as a user does, in separate processes, each test with its own store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import fleet_lab, postgresql
from tests.directories import once, set_directories, sharing
from tests.limits import LIMIT_S, RUN_LIMIT_S
from tests.starter import Started, Starter

FSLAB = Path(sys.executable).parent / "fslab"
DOCS = Path(__file__).parents[2] / "docs"


def example(page: str, language: str) -> str:
    """Return the first block of code in that language on a page of the documentation."""
    return (DOCS / page).read_text().partition(f"```{language}\n")[2].partition("```")[0]


class Fslab:
    """Runs fslab in the directory ``cwd`` of a test."""

    def __init__(self, cwd: Path, starter: Starter) -> None:
        self.cwd = cwd
        self._starter = starter

    def __call__(
        self, *argv: object, code: int = 0, user: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run fslab to its end and check its exit status. ``user``: the uid to run as."""
        words = [str(FSLAB), *map(str, argv)]
        done = self._starter.run(words, cwd=self.cwd, timeout_s=RUN_LIMIT_S, user=user)
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    def json(self, *argv: object) -> Any:
        """Run fslab and return its standard output, parsed as JSON."""
        return json.loads(self(*argv).stdout)

    def start(self, *argv: object, terminal: int | None = None) -> Started:
        """Start fslab in the background. ``terminal``: as of ``Starter.start``."""
        return self._starter.start([str(FSLAB), *map(str, argv)], cwd=self.cwd, terminal=terminal)

    def trials(self) -> list[dict[str, Any]]:
        """Return all trials of the last campaign, as ``fslab export`` prints them."""
        return list(self.json("export", "--format", "json"))


def end(process: subprocess.Popen[str] | Started, signum: signal.Signals) -> tuple[str, str]:
    """Send a signal to fslab only (not to its tools) and wait for its end. Return its output and its error output."""
    os.kill(process.pid, signum)
    return process.communicate(timeout=LIMIT_S)


# A study for tests that only read a campaign. Its measured values do not matter.
MEASURED = """\
title: A & <b> report
media: {here: {type: directory, path: .}}
stacks: {here: {medium: here}}
workloads:
  files: {tool: engine, operation: small-files, files: 200, size: 4k, operations: "create,delete"}
trials: 2
cache: warm
"""


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory, worker_id: str, starter: Starter) -> Path:
    """Return a data directory with one finished campaign, measured once per session for all workers."""

    def make(work: Path) -> None:
        (work / "s.yaml").write_text(MEASURED)
        with sharing(), pytest.MonkeyPatch.context() as patch:
            set_directories(patch, work)
            Fslab(work, starter)("run", "s.yaml", "--quiet")

    return once(tmp_path_factory, worker_id, "stored", make) / "data"


@pytest.fixture
def measured(fslab: Fslab, stored: Path, own_directories: Path) -> Fslab:
    """Return fslab with a copy of the stored campaign in its store, and its study file in the directory."""
    shutil.copytree(stored, own_directories / "data")
    (fslab.cwd / "s.yaml").write_text(MEASURED)
    return fslab


@pytest.fixture
def fslab(tmp_path: Path, starter: Starter) -> Fslab:
    return Fslab(tmp_path, starter)


@pytest.fixture
def programs() -> Path:
    """Return the directory of PostgreSQL's programs."""
    found = postgresql.binaries()
    if found is None:
        pytest.skip("PostgreSQL's server is not installed: make test-packages")
    return found


@pytest.fixture
def two(programs: Path, tmp_path: Path, starter: Starter) -> Iterator[fleet_lab.Lab]:
    """Yield a running fleet of two machines."""
    with fleet_lab.lab(programs, tmp_path, 2, starter) as made:
        yield made
