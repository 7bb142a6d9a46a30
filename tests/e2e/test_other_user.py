"""As another user than root: what can be measured is, and what cannot says what root would add."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.e2e.conftest import FSLAB

pytestmark = pytest.mark.root

NOBODY = 65534


def as_nobody(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run fslab as `nobody`, who may read this checkout wherever it lies but write only to ``home``."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("needs setpriv")
    # access(2) looks at capabilities only with that bit, and a guest's hostfs asks by access(2).
    may_read = (
        "--securebits=+no_setuid_fixup",
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    return subprocess.run(
        [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *may_read, str(FSLAB), *argv],
        capture_output=True, text=True, check=False, cwd=home, timeout=120, env={**environment, "HOME": str(home)},
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)
    for parent in path.parents:
        if parent.is_relative_to("/tmp") and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o011)
    return path


def test_the_directory_is_measured(home: Path) -> None:
    done = as_nobody(home, "run", "here", "--set", "trials=1", "--set", "workloads.random-write.runtime=1s")
    assert done.returncode == 0, done.stderr
    assert "write iops" in done.stdout
    assert "With root" in done.stdout
    assert [path.name for path in home.iterdir()] == [".local"], "only the store is left"


def test_what_needs_root_says_so_and_makes_nothing(home: Path) -> None:
    done = as_nobody(home, "run", "quick")
    assert done.returncode == 4
    assert "needs root" in done.stderr
    assert "fslab run here" in done.stderr
    assert not list(home.rglob("*.img"))
