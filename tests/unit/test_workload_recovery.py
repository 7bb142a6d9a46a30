"""Tests of the workload ``recovery``: which command is run, and how its output is read."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.read import read_whole

from fslab.crash.trial_request import REQUESTS, RecoveryRequest
from fslab.errors import NoSpaceError, ToolOutputError, UnsupportedError
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial_warnings import REGISTRY as RULES
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

RECOVERY = REGISTRY.get("recovery")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=(1 << 31) + 7)
DOCUMENT: dict[str, Any] = {
    "version": 1, "filesystem": "ext4", "files": 5, "recovery_ns": 300, "first_read_ns": 20, "first_write_ns": 10,
    "check_ns": 1000, "read_bytes": 4096, "written_bytes": 8192, "kept_files": 3, "lost": None, "damaged": None,
}  # fmt: skip


def reading(document: dict[str, Any], stderr: str = "", **raw: Any) -> Reading:
    return read_whole(RECOVERY, raw, ToolOutput(stdout=json.dumps(document), stderr=stderr, duration_s=2.0))


def test_what_is_run() -> None:
    parameters = RECOVERY.parse_parameters({"files": 50, "size": "8k", "existing": 20, "check": False})
    commands = RECOVERY.commands(parameters, JOB)
    (text,) = commands.inputs.values()
    assert REQUESTS.validate_json(text) == RecoveryRequest(
        directory=Path("/mnt/x/work"), files=50, size="8k", check=False, seed=7
    )
    assert [argv[0] for argv in commands.prepare] == ["fslab-engine", "mkdir"]
    assert "files:20:4k:fixed" in commands.prepare[0]
    without = RECOVERY.parse_parameters({})
    assert [argv[0] for argv in RECOVERY.commands(without, JOB).prepare] == ["mkdir"]
    assert RECOVERY.space_bytes(parameters) > 50 * 8192
    assert set(RECOVERY.scaled(parameters, 0.5)) == {"files", "existing"}


def test_times_bytes_and_files() -> None:
    found = reading(DOCUMENT)
    assert (found.metrics["recovery"], found.metrics["check"]) == (300, 1000)
    assert (found.metrics["recovery_read_bytes"], found.metrics["kept_files"]) == (4096, 3)
    assert found.measured_s == pytest.approx(1330e-9)
    assert found.promises_broken == ()
    assert "check" not in reading({**DOCUMENT, "check_ns": None}, check=False).metrics


def test_what_is_lost_or_damaged_is_a_broken_promise() -> None:
    found = reading({**DOCUMENT, "lost": "the file that was synced: gone", "damaged": "e2fsck exits 4"})
    assert found.promises_broken == ("the file that was synced: gone", "e2fsck exits 4")


def test_output_that_is_none() -> None:
    with pytest.raises(ToolOutputError, match="KeyError"):
        reading({"version": 1})
    with pytest.raises(UnsupportedError, match="whose power can be cut"):
        reading({}, stderr="fslab: /x: this is not on one virtual disk")
    with pytest.raises(NoSpaceError):
        reading({}, stderr="OSError: [Errno 28] No space left on device")


@pytest.mark.parametrize(
    "raw", [{"files": -1}, {"size": "0"}, {"unflushed": "some"}, {"existing": 10_000_000}]
)
def test_parameters_that_are_none(raw: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RECOVERY.parse_parameters(raw)


def test_errors_of_its_own_disk_are_those_of_the_cut() -> None:
    lines = ("I/O error, dev loop3, sector 8", "XFS (loop3): log I/O error -5", "kernel BUG at fs/inode.c:1")
    for cut, told in ((True, 1), (False, 3)):
        work = WorkFacts(disk_fails=cut)
        facts = TrialFacts(work=work, cold=True, texts={"kernel_log": lines}, devices=("loop3",))
        (warning,) = RULES.get("kernel-error").warnings(facts)
        assert warning.data["count"] == told
