"""Tests of the workloads ``crash``, ``recovery`` and ``io-errors``: which command is run, how its output is read."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read_whole

from fslab import faults
from fslab.api import crash
from fslab.campaign import tool_output
from fslab.cell import WorkloadSpec
from fslab.crash import bounded_sequences
from fslab.crash.sequences import Sequences
from fslab.crash.trial_request import REQUESTS, CrashRequest, RecoveryRequest
from fslab.errors import UnsupportedError, UsageError
from fslab.system.proc import Completed, Usage
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial_warnings import REGISTRY as RULES
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput, Workload, parsed

CRASH, RECOVERY, IO_ERRORS = map(REGISTRY.get, ("crash", "recovery", "io-errors"))
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=(1 << 31) + 7)
FINDING = {
    "id": "0a1b2c3d.17-lost", "kind": "name lost", "broken": True, "detail": "'n' does not exist", "source": "POSIX",
    "state": "17-lost", "sequence": ["create n", "fsync n"], "step": 2, "lost_rows": [16], "count": 3,
}  # fmt: skip
CUT: dict[str, Any] = {
    "version": 1, "filesystem": "ext4", "sequences": 64, "states": 4, "states_damaged": 1, "promises_kept": 40,
    "promises_broken": 2, "lost_operations": 9, "findings_broken": 2, "recovery_ns": [4, 1, 3, 2],
    "loss_window_ns": [0, 7, 0, 9],
    "findings": [FINDING, {**FINDING, "broken": False, "kind": "neither old nor new"}],
}  # fmt: skip
RECOVERED: dict[str, Any] = {
    "version": 1, "filesystem": "ext4", "files": 5, "recovery_ns": 300, "first_read_ns": 20, "first_write_ns": 10,
    "check_ns": 1000, "read_bytes": 4096, "written_bytes": 8192, "kept_files": 3, "lost": None, "damaged": None,
}  # fmt: skip
FAULTY: dict[str, Any] = {
    "version": 1, "filesystem": "ext4", "fault": "bit-rot-data", "hit": 16, "reported": 3, "silent": 4, "unharmed": 9,
    "reported_once": 2, "lost": 1, "writes_stopped": True, "needs_repair": False, "examples": [],
}  # fmt: skip


def reading(tool: Workload[Any], document: dict[str, Any], **raw: Any) -> Reading:
    return read_whole(tool, raw, ToolOutput(stdout=json.dumps(document), stderr="", duration_s=2.0))


def test_what_is_run_for_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    # Tools do not inherit XDG_STATE_HOME, so its directory is in the request.
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    parameters = CRASH.parse_parameters({"length": 2, "states": 50, "sector": "512"})
    commands = CRASH.commands(parameters, JOB)
    ((name, text),) = commands.inputs.items()
    assert commands.run == ("fslab", "crash", "run", f"/run/s/{name}")
    assert REQUESTS.validate_json(text) == CrashRequest(
        directory=Path("/mnt/x"), length=2, states=50, sector="512", seed=7, scratch=Path("/run/s"),
        recordings=Path("/state/fslab/crash"),
    )  # fmt: skip


def test_counts_and_quantiles() -> None:
    metrics = reading(CRASH, CUT).metrics
    assert metrics["promises_broken"] == 2
    assert metrics["lost_operations"] == 9
    assert (metrics["recovery_p50"], metrics["recovery_p95"]) == (3, 4)
    assert (metrics["loss_window_p50"], metrics["loss_window_p95"]) == (7, 9)
    assert reading(CRASH, {**CUT, "recovery_ns": []}).metrics["recovery_p50"] is None


def test_caches_that_steps_drop_are_its_own() -> None:
    assert (reading(CRASH, CUT).drops, reading(CRASH, {**CUT, "cache_drops": 4}).drops) == (0, 4)
    chosen = bounded_sequences.published()
    assert Sequences(chosen=chosen).extent()["cache_drops"] == 4


def test_broken_promises_are_told_with_what_makes_them_again() -> None:
    (told,) = reading(CRASH, CUT).promises_broken
    assert told == "name lost (0a1b2c3d.17-lost) after create n; fsync n: 'n' does not exist; POSIX"
    whole = {**FINDING, "id": None, "kind": "not mountable", "sequence": None, "detail": "no log"}
    (told,) = reading(CRASH, {**CUT, "findings": [whole]}).promises_broken
    assert told == "not mountable: no log; POSIX"


def test_a_tool_that_fails_for_it_is_not_called_crashed() -> None:
    said = "fslab: /mnt/work: this is not on one virtual disk"
    usage = Usage(user_s=0.0, system_s=0.0, max_rss_bytes=None, voluntary_switches=0, involuntary_switches=0)
    done = Completed(argv=("fslab",), returncode=4, stdout="", stderr=said, duration_s=1.0, usage=usage)
    workload = parsed(WorkloadSpec(name="w", tool="crash", parameters={}))
    with pytest.raises(UnsupportedError, match="log of its data"):
        tool_output.reading(workload, done, ToolOutput(stdout="", stderr=said, duration_s=1.0))


def test_an_application_has_runs_settings_and_its_program() -> None:
    parameters = CRASH.parse_parameters(
        {"application": "git", "settings": "core.fsync=all", "transactions": 7}
    )
    (text,) = CRASH.commands(parameters, JOB).inputs.values()
    request = CrashRequest.model_validate_json(text)
    assert (request.runs, request.application, request.settings) == (3, "git", "core.fsync=all")
    assert request.transactions == 7
    assert [tool.program for tool in CRASH.tools_of(parameters)] == ["fslab", "fslab-disk", "git"]


def test_what_is_lost_is_compared_where_it_is_not_promised() -> None:
    def headline(settings: str) -> tuple[str, ...]:
        return CRASH.headline(CRASH.parse_parameters({"application": "sqlite", "settings": settings}))

    assert headline("journal_mode=wal") == ("promises_broken",)
    lost = ("promises_broken", "lost_operations", "loss_window_p95")
    assert headline("journal_mode=wal,synchronous=normal") == lost


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"x" * (2 << 20), "(?i)too large"), (b"\xff", "not UTF-8"), (b'{"do": "test"}', "directory")],
)
def test_a_file_that_is_no_request(content: bytes, why: str, tmp_path: Path) -> None:
    (file := tmp_path / "request.json").write_bytes(content)
    with pytest.raises(UsageError, match=why):
        crash.run_request(file)


def test_what_is_run_for_recoveries() -> None:
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
    found = reading(RECOVERY, RECOVERED)
    assert (found.metrics["recovery"], found.metrics["check"]) == (300, 1000)
    assert (found.metrics["recovery_read_bytes"], found.metrics["kept_files"]) == (4096, 3)
    assert found.measured_s == pytest.approx(1330e-9)
    assert found.promises_broken == ()
    assert "check" not in reading(RECOVERY, {**RECOVERED, "check_ns": None}, check=False).metrics


def test_what_is_lost_or_damaged_is_a_broken_promise() -> None:
    found = reading(
        RECOVERY, {**RECOVERED, "lost": "the file that was synced: gone", "damaged": "e2fsck exits 4"}
    )
    assert found.promises_broken == ("the file that was synced: gone", "e2fsck exits 4")


def test_errors_of_its_own_disk_are_those_of_the_cut() -> None:
    lines = ("I/O error, dev loop3, sector 8", "XFS (loop3): log I/O error -5", "kernel BUG at fs/inode.c:1")
    for cut, told in ((True, 1), (False, 3)):
        work = WorkFacts(disk_fails=cut)
        facts = TrialFacts(work=work, cold=True, texts={"kernel_log": lines}, devices=("loop3",))
        (warning,) = RULES.get("kernel-error").warnings(facts)
        assert warning.data["count"] == told


@pytest.mark.parametrize("name", faults.REGISTRY.names())
def test_each_fault_can_be_asked_for(name: str) -> None:
    commands = IO_ERRORS.commands(IO_ERRORS.parse_parameters({"fault": name}), JOB)
    (text,) = commands.inputs.values()
    assert json.loads(text) == {
        "do": "fault", "directory": "/mnt/x/work", "fault": name, "seed": 7, "scratch": "/run/s"
    }  # fmt: skip
    assert faults.REGISTRY.get(name).summary


def test_counts_and_what_became_of_the_file_system() -> None:
    found = reading(IO_ERRORS, FAULTY)
    assert (found.metrics["silent"], found.metrics["reported"], found.metrics["unharmed"]) == (4, 3, 9)
    assert (found.metrics["writes_stopped"], found.metrics["needs_repair"]) == (1, 0)
    assert found.disk_fails
    assert found.promises_broken == ()


def test_a_fault_that_nothing_met_has_no_counts() -> None:
    missed = {**FAULTY, "hit": 0, "reported": 0, "silent": 0, "unharmed": 0, "reported_once": 0}
    found = reading(IO_ERRORS, missed).metrics
    assert (found["hit"], found["lost"]) == (0, 1)
    assert {found[name] for name in ("silent", "reported", "unharmed", "reported_once")} == {None}
