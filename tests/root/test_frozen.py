"""Tests of what freezes a file system for other tests: it thaws, however the test ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import leaks
from tests.limits import ran, wait_for

from fslab.system import mounts, proc

# Freezes a file system, prints the id of the process that thaws it, and waits.
FREEZES = """
import signal, sys
from pathlib import Path
from tests.frozen import frozen
with frozen(Path(sys.argv[1])) as thaws:
    print(thaws, flush=True)
    signal.pause()
"""


@pytest.fixture
def mounted(loop: Callable[[], Path], tmp_path: Path) -> Iterator[Path]:
    target, device = tmp_path / "mounted", loop()
    target.mkdir()
    proc.run(["mkfs.ext4", "-q", str(device)])
    proc.run(["mount", str(device), str(target)])
    yield target
    mounts.unmount(target, devices=None)


def test_a_file_system_thaws_when_the_process_that_froze_it_is_killed(mounted: Path) -> None:
    argv = [sys.executable, "-c", FREEZES, str(mounted)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as test:
        assert test.stdout is not None
        thaws = int(test.stdout.readline())
        test.kill()
    wait_for(lambda: leaks.is_dead(Path(f"/proc/{thaws}")))
    again = ran(["fsfreeze", "--unfreeze", mounted])
    assert "Invalid argument" in again.stderr, "it was still frozen"
