"""Tests of directories for temporary files: what a killed process left is removed, nothing else."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests import fuse
from tests.limits import LIMIT_S, wait_for

from fslab.campaign import cleanup
from fslab.errors import UnsafeError
from fslab.system import paths
from fslab.system.temporary import LOCK, TemporaryDirectory, remove_left

HOLDS = """
import signal, sys
from pathlib import Path
from fslab.system.temporary import TemporaryDirectory
made = TemporaryDirectory("store", Path(sys.argv[1]))
(made.path / "a").mkdir()
(made.path / "a/copy").write_text("x")
print(made.path, flush=True)
signal.pause()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


def test_what_a_killed_process_left_is_removed_and_what_one_uses_is_not(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    argv = [sys.executable, "-c", HOLDS, str(place)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as held:
        assert held.stdout is not None
        left = Path(held.stdout.readline().decode().strip())
        assert remove_left() == []
        held.send_signal(signal.SIGKILL)
        held.wait(LIMIT_S)
    assert (left / "a/copy").exists()
    with TemporaryDirectory("check") as used:
        done, failures = cleanup.clean_all()
        assert [(kind, entry.target) for kind, entry in done] == [("temporary", str(left))]
        assert failures == []
        assert [*place.iterdir()] == [used.path]
    assert [*place.iterdir()] == []


def test_nothing_else_is_removed(place: Path) -> None:
    """A user may have made a directory with such a name."""
    mine, readable, theirs = (place / f"fslab-store-{name}" for name in ("20261129", "readable", "elsewher"))
    for path in (mine, readable, theirs):
        path.mkdir(0o700)
        (path / "results").touch()
    (readable / LOCK).touch()
    readable.chmod(0o755)
    (theirs / LOCK).touch()
    if os.geteuid() == 0:
        os.chown(theirs, 65534, 65534)
    else:
        theirs.chmod(0o750)
    (place / "fslab-store-filefile").write_text("x")
    (place / "fslab-store-linklink").symlink_to(mine)
    before = {*place.rglob("*")}
    assert remove_left() == []
    assert {*place.rglob("*")} == before


def test_one_that_is_taken_for_a_left_one_before_it_is_locked_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, calls = fcntl.flock, itertools.count()
    removed: list[Path] = []

    def late(descriptor: int, operation: int) -> None:
        if next(calls) == 0:
            removed.extend(remove_left())
            raise BlockingIOError
        known(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with TemporaryDirectory("check") as made:
        assert removed != [made.path]
        assert [*place.iterdir()] == [made.path]
    assert [*place.iterdir()] == []


def test_a_directory_for_temporary_files_that_is_not_safe_holds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path | None) -> Path:
        raise UnsafeError("others can write there")

    monkeypatch.setattr(paths, "temporary", refused)
    assert remove_left() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts FUSE")
def test_no_server_is_asked_whether_its_directory_is_one_that_was_left(place: Path) -> None:
    """One that does not answer would let each clean-up wait for ever."""
    (served := place / "fslab-store-x").mkdir()
    with fuse.mounted(served, of=65534, says=65534) as asked:
        wait_for(lambda: asked)  # for INIT
        asked.clear()
        assert remove_left() == []
        assert asked == []
