"""Tests of the workload ``shell``: which loops are run, and that a loop that ended early has no metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read_whole

from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

SHELL = REGISTRY.get("shell")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=7)
OPERATIONS = ["create", "read", "delete", "mkdir", "rmdir", "touch", "echo", "cat", "dd", "rm"]


def reading(stdout: str, *, stderr: str = "", **raw: Any) -> Reading:
    return read_whole(SHELL, raw, ToolOutput(stdout=stdout, stderr=stderr, duration_s=2.5))


def test_the_rate_is_that_of_the_whole_loop() -> None:
    found = reading("1000\n", operation="create", files=1000)
    assert found.metrics == {"create_rate": 400.0}
    assert (found.read_bytes, found.written_bytes, found.measured_s) == (0, 4096000, 2.5)
    assert (found.working_set_bytes, found.flushed, found.direct) == (4096000, False, False)
    written = ("create", "dd", "echo", "cat")
    assert [reading("9\n", operation=each, files=9).zeros for each in written] == [True, True, False, False]


def test_reads_and_lines() -> None:
    found = reading("10\n", operation="cat", files=10, size="1k")
    assert (found.read_bytes, found.written_bytes, found.flushed) == (10240, 0, None)
    # Ten lines "line N" and two lines "line NN", each with a newline.
    assert reading("12\n", operation="echo", files=12).written_bytes == 10 * 7 + 2 * 8
    assert reading("12\n", operation="mkdir", files=12).written_bytes == 0
    assert reading("12\n", operation="touch", files=12, sync=True).flushed is True


def test_commands_of_a_read() -> None:
    commands = SHELL.commands(SHELL.parse_parameters({"operation": "read", "files": 20, "size": "4k"}), JOB)
    directory, made = commands.prepare
    assert directory == ("mkdir", "/mnt/x/fslab.shell")
    script = (
        'set -eu; cd "$3"; i=0; while [ "$i" -lt "$1" ]; do head -c "$2" /dev/zero >"file.$i"; i=$((i+1)); done; '
        'if [ "$4" = 1 ]; then sync -f .; fi; echo "$i"'
    )
    assert made == ("sh", "-c", script, "fslab", "20", "4096", "/mnt/x/fslab.shell", "0")
    assert 'do cat "file.$i" >/dev/null; i=' in commands.run[2]
    assert commands.run[3:] == ("fslab", "20", "4096", "/mnt/x/fslab.shell", "0")
    assert commands.cleanup == (("rm", "-r", "-f", "/mnt/x/fslab.shell"),)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_numbers_and_names_never_become_script(operation: str) -> None:
    job = Job(directory=Path("/mnt/$(reboot) x"), scratch=Path("/run/s"), seed=7)
    parameters = SHELL.parse_parameters({"operation": operation, "files": 4711, "sync": True})
    commands = SHELL.commands(parameters, job)
    loops = [argv for argv in (*commands.prepare, commands.run) if argv[0] == "sh"]
    assert loops[-1][-1] == "1"
    assert all("reboot" not in argv[2] and "4711" not in argv[2] for argv in loops)
    assert len(loops) == (2 if operation in {"read", "cat", "delete", "rm", "rmdir"} else 1)
    assert all(argv[-1] == "0" for argv in loops[:-1])


def test_room_and_time() -> None:
    small = SHELL.parse_parameters({"operation": "delete", "files": 600, "size": "5k"})
    # Two blocks and an inode per file; created and deleted at 1,500 processes per second.
    assert SHELL.space_bytes(small) == 600 * (8192 + 1024)
    assert SHELL.expected_s(small) == pytest.approx(0.8)
    assert SHELL.space_bytes(SHELL.parse_parameters({"operation": "mkdir", "files": 10})) == 10 * 5120


def test_the_summary_says_what_it_measures() -> None:
    assert "fork and exec" in SHELL.summary
