"""Tests of IOzone, bonnie++ and shell loops: small real runs on the file systems that studies compare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.limits import LIMIT_S

from fslab.cell import Cache
from fslab.storage import Workspace
from fslab.system import proc, tools
from fslab.trial_record import TrialRecord

FILESYSTEMS = ["ext4", "xfs", "btrfs"]
iozone_is_here = pytest.mark.skipif(
    tools.find("iozone") is None, reason="IOzone is in Debian's non-free: packaging/iozone.sh target/iozone"
)
both_programs = pytest.mark.parametrize("program", ["engine", pytest.param("iozone", marks=iozone_is_here)])


def run(
    workspace: Workspace, filesystem: str, tool: str, parameters: dict[str, Any], cache: Cache = Cache.WARM
) -> TrialRecord:
    stack = made.spec(filesystem, options={"size": "320m", "room": "320m"})
    return made.run(workspace, made.cell(stack, tool, parameters, time_limit_s=LIMIT_S, cache=cache))


def written(record: TrialRecord) -> float:
    return made.known(record.probes["device_written_bytes_flushed"].value)


@both_programs
@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_iozone_at_a_point(filesystem: str, program: str, workspace: Workspace) -> None:
    record = run(workspace, filesystem, "iozone", {"size": "16m", "record": "64k", "program": program})
    assert len(made.figures(record)) == 6
    # The record names only the program that ran.
    which = {"engine": "fslab-engine", "iozone": "iozone"}
    found = {name for name in which.values() if record.provenance.tools.get(name) is not None}
    assert found == {which[program]}
    # The file is written, rewritten and written at random, each time with an fsync.
    assert written(record) >= 3 * (16 << 20)


@both_programs
def test_iozone_reads_cold_what_was_written_before(program: str, workspace: Workspace) -> None:
    given = {"tests": 1, "size": "32m", "record": "64k", "retest": False, "program": program}
    record = run(workspace, "ext4", "iozone", given, Cache.COLD)
    assert set(made.figures(record)) == {"read_bandwidth"}
    assert made.known(record.probes["device_read_bytes"].value) >= 32 << 20


@both_programs
def test_iozone_with_processes_and_direct(program: str, workspace: Workspace) -> None:
    given = {"size": "8m", "record": "64k", "threads": 2, "direct": True, "program": program}
    record = run(workspace, "ext4", "iozone", given)
    assert len(made.figures(record)) == 6


@iozone_is_here
def test_iozone_visits_the_same_records_in_every_run(tmp_path: Path) -> None:
    point = ["-s", "256k", "-r", "4k", "-i", "0", "-i", "2", "-f", str(tmp_path / "f")]
    trace = ["strace", "-e", "trace=lseek,pread64"]
    first, second = (proc.run([*trace, "iozone", *point], cwd=tmp_path).stderr for _ in range(2))
    assert "lseek" in first
    assert first == second


@iozone_is_here
def test_the_engine_makes_iozones_system_calls(tmp_path: Path) -> None:
    """The engine makes the same system calls as IOzone, in the same order.

    Only the random order of the records differs; all records are visited.
    """
    own = tmp_path / "fslab-iozone/d0000000000/f0000000000"
    point = ["-s", "64k", "-r", "4k", "-i", "0", "-i", "1", "-i", "2", "-f", str(tmp_path / "f")]
    sizes = ["--size", "64k", "--record", "4k", "--latency", "off"]
    theirs = file_calls(["iozone", "-e", "-c", *point], tmp_path, "f")
    ours = file_calls(
        ["fslab-engine", "iozone", str(tmp_path), "--flush", "--close", *sizes], tmp_path, own.name
    )
    assert len(theirs) == 6
    assert [calls for calls, _ in ours] == [calls for calls, _ in theirs]
    records = [sorted(offsets) for _, offsets in theirs]
    assert [sorted(offsets) for _, offsets in ours] == records
    assert records[4] == records[5] == [4096 * number for number in range(16)]
    for found in (ours, theirs):
        assert found[4][1] == found[5][1] != records[4]


def file_calls(argv: list[str], cwd: Path, name: str) -> list[tuple[list[str], list[int]]]:
    """Return the system calls and seek offsets, one item for each time that the file is opened for its contents."""
    trace = ["strace", "-f", "-e", "trace=openat,read,write,lseek,fsync,close", "-e", "signal=none"]
    found: list[tuple[list[str], list[int]]] = []
    descriptor = None
    for line in proc.run([*trace, *argv], cwd=cwd).stderr.splitlines():
        call = re.search(r"(\w+)\((\w+)(?:, (\d+), SEEK_SET)?.*= (-?\d+)", line)
        if call is None:
            continue
        if call[1] == "openat" and f'{name}"' in line and "000)" not in line:
            descriptor = call[4]
            found.append(([], []))
        elif call[2] == descriptor and call[4] != "-1":
            found[-1][0].append(call[1])
            found[-1][1].extend([int(call[3])] if call[3] else [])
            descriptor = None if call[1] == "close" else descriptor
    return found


@pytest.mark.parametrize(
    "filesystem",
    ["ext4", *(pytest.param(each, marks=pytest.mark.slow) for each in FILESYSTEMS if each != "ext4")],
)
def test_bonnie(filesystem: str, workspace: Workspace) -> None:
    given = {"size": "32m", "files": 2048, "dirs": 4, "max-size": "1k", "min-size": "1k", "fast": False}
    record = run(workspace, filesystem, "bonnie", given)
    # bonnie++ reports no rate below 0.5 s. Writing 3 MiB byte by byte takes longer on any machine; other tests may not.
    assert {"putc_bandwidth", "write_latency_max", "seq_create_latency_max"} <= set(made.figures(record))
    assert record.provenance.tools["bonnie++"] is not None
    assert "tool_warning" in [warning.kind for warning in record.validity]


def test_bonnie_writes_only_its_first_pass_past_the_cache(tmp_path: Path) -> None:
    argv = ["bonnie++", "-q", "-d", str(tmp_path), "-u", "root", "-r", "0", "-s", "2", "-n", "0", "-f", "-D"]
    traced = proc.run(["strace", "-f", "-e", "trace=openat", *argv], cwd=tmp_path).stderr
    opened = [line for line in traced.splitlines() if "/Bonnie." in line]
    assert {"O_DIRECT" in line for line in opened if "O_CREAT" in line} == {True}
    assert {"O_DIRECT" in line for line in opened if "O_CREAT" not in line} == {False}


LOOPS = {("ext4", "create"), ("xfs", "read"), ("btrfs", "rmdir")}  # the others in make test-all


@pytest.mark.parametrize(
    ("filesystem", "operation"),
    [
        pytest.param(
            filesystem, operation, marks=() if (filesystem, operation) in LOOPS else pytest.mark.slow
        )
        for filesystem in FILESYSTEMS
        for operation in ("create", "read", "rmdir")
    ],
)
def test_shell_loops(filesystem: str, operation: str, workspace: Workspace) -> None:
    record = run(workspace, filesystem, "shell", {"operation": operation, "files": 200})
    assert made.figures(record)[f"{operation}_rate"] > 0


@pytest.mark.parametrize("operation", ["delete", "mkdir", "touch", "echo", "cat", "dd", "rm"])
def test_every_loop(operation: str, workspace: Workspace) -> None:
    record = run(workspace, "ext4", "shell", {"operation": operation, "files": 50, "sync": True})
    assert made.figures(record)[f"{operation}_rate"] > 0


@pytest.mark.parametrize("operation", ["create", pytest.param("dd", marks=pytest.mark.slow)])
def test_a_loop_on_a_full_disk(operation: str, workspace: Workspace) -> None:
    # Deliberately too large for the medium. A study with this workload would be refused before its first trial.
    record = run(workspace, "ext4", "shell", {"operation": operation, "files": 400, "size": "1m"})
    assert record.status_text == "failed:no_space"


@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("bonnie", {"size": "512m"}),
        ("iozone", {"size": "512m", "program": "engine"}),
        pytest.param("iozone", {"size": "512m"}, marks=[iozone_is_here, pytest.mark.slow]),
    ],
)
def test_a_full_disk(tool: str, parameters: dict[str, Any], workspace: Workspace) -> None:
    assert run(workspace, "ext4", tool, parameters).status_text == "failed:no_space"
