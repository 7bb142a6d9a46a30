"""Tests of control groups for a measuring process, in the kernel's own hierarchy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import leaks
from tests.limits import LIMIT_S, wait_for

from fslab.system import cgroup, mountinfo

NAME = f"fslab-test-{os.getpid()}"
STRAY = """
import os, sys
from pathlib import Path
from fslab.system.cgroup import ControlGroup
ControlGroup(path=Path(sys.argv[1])).enter()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.close(1)
        os.execvp("sleep", ["sleep", "infinity"])
    os._exit(0)
os.wait()
"""
BELOW = """
import sys
from pathlib import Path
from fslab.system import cgroup
cgroup.ControlGroup(path=Path(sys.argv[1])).enter()
print(cgroup.create("below"))
"""


@pytest.fixture
def group() -> Iterator[cgroup.ControlGroup]:
    made = cgroup.create(NAME)
    if made is None:
        kinds = {each.filesystem for each in mountinfo.mounted()}
        pytest.skip(
            "this process's group is a service manager's" if "cgroup2" in kinds else "no cgroup version 2"
        )
    yield made
    made.end()
    assert not made.path.exists()


def python(code: str, group: cgroup.ControlGroup) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, str(group.path)], check=True, timeout=LIMIT_S, stdout=subprocess.PIPE
    )
    return done.stdout.decode().strip()


def test_the_end_of_a_group_ends_a_process_that_left_its_session(group: cgroup.ControlGroup) -> None:
    stray = int(python(STRAY, group))
    assert group.processes() == [stray]
    group.end()
    wait_for(lambda: leaks.is_dead(Path(f"/proc/{stray}")))
    assert not group.path.exists()


def test_a_group_that_exists_is_taken(group: cgroup.ControlGroup) -> None:
    assert cgroup.create(NAME) == group


def test_groups_are_made_below_a_delegated_group_only(group: cgroup.ControlGroup) -> None:
    assert python(BELOW, group) == "None"
    assert list(group.path.glob("*/")) == []
    os.setxattr(group.path, "user.delegate", b"1")
    assert python(BELOW, group) == f"{cgroup.ControlGroup(path=group.path / 'below')!r}"
    (group.path / "below").rmdir()
