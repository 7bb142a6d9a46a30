"""Tests of the workload ``crash``: which command is run, and how its output is read."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.read import read_whole

from fslab.api import crash
from fslab.campaign import tool_output
from fslab.cell import WorkloadSpec
from fslab.crash import bounded_sequences
from fslab.crash.sequences import Sequences
from fslab.crash.trial_request import REQUESTS, CrashRequest
from fslab.errors import ToolOutputError, UnsupportedError, UsageError
from fslab.system.proc import Completed, Usage
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput, parsed

CRASH = REGISTRY.get("crash")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=(1 << 31) + 7)
FINDING = {
    "id": "0a1b2c3d.17-lost", "kind": "name lost", "broken": True, "detail": "'n' does not exist", "source": "POSIX",
    "state": "17-lost", "sequence": ["create n", "fsync n"], "step": 2, "lost_rows": [16], "count": 3,
}  # fmt: skip
DOCUMENT: dict[str, Any] = {
    "version": 1, "filesystem": "ext4", "sequences": 64, "states": 4, "states_damaged": 1, "promises_kept": 40,
    "promises_broken": 2, "lost_operations": 9, "findings_broken": 2, "recovery_ns": [4, 1, 3, 2],
    "loss_window_ns": [0, 7, 0, 9],
    "findings": [FINDING, {**FINDING, "broken": False, "kind": "neither old nor new"}],
}  # fmt: skip


def reading(document: dict[str, Any], stderr: str = "") -> Reading:
    return read_whole(CRASH, {}, ToolOutput(stdout=json.dumps(document), stderr=stderr, duration_s=2.0))


def test_what_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
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
    metrics = reading(DOCUMENT).metrics
    assert metrics["promises_broken"] == 2
    assert metrics["lost_operations"] == 9
    assert (metrics["recovery_p50"], metrics["recovery_p95"]) == (3, 4)
    assert (metrics["loss_window_p50"], metrics["loss_window_p95"]) == (7, 9)
    assert reading({**DOCUMENT, "recovery_ns": []}).metrics["recovery_p50"] is None


def test_caches_that_steps_drop_are_its_own() -> None:
    assert (reading(DOCUMENT).drops, reading({**DOCUMENT, "cache_drops": 4}).drops) == (0, 4)
    chosen = bounded_sequences.published()
    assert Sequences(chosen=chosen).extent()["cache_drops"] == 4


def test_broken_promises_are_told_with_what_makes_them_again() -> None:
    (told,) = reading(DOCUMENT).promises_broken
    assert told == "name lost (0a1b2c3d.17-lost) after create n; fsync n: 'n' does not exist; POSIX"


def test_a_disk_without_a_log_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match="log of its data"):
        reading({}, stderr="fslab: this is not on one virtual disk with a log of its data")


def test_a_tool_that_fails_for_it_is_not_called_crashed() -> None:
    said = "fslab: /mnt/work: this is not on one virtual disk"
    usage = Usage(user_s=0.0, system_s=0.0, max_rss_bytes=None, voluntary_switches=0, involuntary_switches=0)
    done = Completed(argv=("fslab",), returncode=4, stdout="", stderr=said, duration_s=1.0, usage=usage)
    workload = parsed(WorkloadSpec(name="w", tool="crash", parameters={}))
    with pytest.raises(UnsupportedError, match="log of its data"):
        tool_output.reading(workload, done, ToolOutput(stdout="", stderr=said, duration_s=1.0))


def test_output_that_is_none() -> None:
    with pytest.raises(ToolOutputError, match="KeyError"):
        reading({"version": 1})


@pytest.mark.parametrize("raw", [{"sector": "500"}, {"sector": "0"}, {"length": 4}, {"states": 0}])
def test_parameters_that_are_none(raw: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CRASH.parse_parameters(raw)


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
    ("given", "told"),
    [
        ({"application": "sqlit"}, "did you mean 'sqlite'"),
        ({"application": "sqlite", "settings": "journal_mode=fast"}, "invalid value 'fast' for journal_mode"),
        ({"settings": "journal_mode=wal"}, "needs 'application'"),
        ({"application": "sqlite", "transactions": 0}, "transactions"),
        ({"transactions": 7}, "'transactions' needs 'application'"),
        ({"application": "sqlite", "length": 2}, "'length' has no effect with 'application'"),
        ({"application": "sqlite", "operations": "published"}, "'operations' has no effect"),
        ({"application": "sqlite", "skip": 4}, "'skip' has no effect"),
    ],
)
def test_applications_that_there_are_not(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        CRASH.parse_parameters(given)


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"x" * (2 << 20), "(?i)too large"), (b"\xff", "not UTF-8"), (b'{"do": "test"}', "directory")],
)
def test_a_file_that_is_no_request(content: bytes, why: str, tmp_path: Path) -> None:
    (file := tmp_path / "request.json").write_bytes(content)
    with pytest.raises(UsageError, match=why):
        crash.run_request(file)
