"""Tests of the workload ``engine``, with golden documents of the protocol and output of fslab-engine 0.1.0."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.read import read, read_whole

from fslab.errors import NoSpaceError, ToolFailedError, ToolOutputError
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

ROOT = Path(__file__).parents[2]
PROTOCOL = ROOT / "engine/golden"
RECORDED = ROOT / "tests/golden/fslab-engine-0.1.0"
ENGINE = REGISTRY.get("engine")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=7)


def reading(text: str, **raw: Any) -> Reading:
    return read_whole(ENGINE, raw, ToolOutput(stdout=text, stderr="", duration_s=1.0))


def changed(**changes: Any) -> str:
    """Return the golden document as text, with ``changes`` of its keys."""
    return json.dumps({**json.loads((PROTOCOL / "small-files.json").read_text()), **changes})


def test_all_four_operations() -> None:
    document = json.loads((PROTOCOL / "small-files.json").read_text())
    create, _, read, delete = document["operations"]
    found = reading(changed(), dirs=2, threads=2)
    assert found.metrics["create_rate"] == create["rate_per_second"]
    assert found.metrics["create_p99_9"] == create["latency_ns"]["p99.9"]
    assert found.metrics["delete_max"] == delete["latency_ns"]["max"]
    assert found.metrics["create_sync"] == create["sync_seconds"]
    assert "read_sync" not in found.metrics
    cpu_s = read["cpu_user_seconds"] + read["cpu_system_seconds"]
    assert found.metrics["read_cpu"] == pytest.approx(cpu_s * 1e9 / read["count"])  # ns per file
    assert (found.read_bytes, found.written_bytes) == (read["bytes"], create["bytes"])
    assert found.measured_s == pytest.approx(sum(entry["seconds"] for entry in document["operations"]))


def test_operations_that_read_what_was_prepared() -> None:
    found = reading((RECORDED / "stat-read.json").read_text(), operations="stat,read", files=5000)
    assert found.metrics["stat_rate"] == 1135821.0236836858
    assert found.metrics["stat_p50"] == 831
    assert found.metrics["stat_cpu"] == pytest.approx(177.8)  # 0.889 ms for 5000 files
    assert (found.read_bytes, found.written_bytes) == (20480000, 0)
    assert set(found.parts_s) == {"stat", "read"}
    assert found.flushed is None


def test_only_headline_operations_are_parts_with_a_time_of_their_own() -> None:
    operations = json.loads(changed())["operations"]
    for entry in operations:
        entry["seconds"] = 0.01 if entry["name"] in {"stat", "read"} else 0.5
    assert reading(changed(operations=operations)).parts_s == {"create": 0.5, "delete": 0.5}


def test_files_that_vanished_are_reported() -> None:
    operations = json.loads(changed())["operations"]
    for entry in operations:
        entry["seconds"] = 0.5
    operations[2]["errors"] = 3
    assert reading(changed(operations=operations)).errors == {"create": 0, "stat": 0, "read": 3, "delete": 0}


def test_warnings_of_the_engine_are_passed_on() -> None:
    warnings = [{"kind": "files_left", "message": "3 files are left"}]
    found = reading(changed(warnings=warnings))
    assert found.messages == ("fslab-engine: 3 files are left",)


def test_latency_that_was_not_recorded_is_unknown() -> None:
    operations = json.loads(changed())["operations"]
    operations[0]["latency_ns"] = None
    found = reading(changed(operations=operations))
    assert found.metrics["create_p50"] is None
    assert found.metrics["create_rate"] is not None


def test_a_full_disk_is_its_own_failure() -> None:
    with pytest.raises(NoSpaceError, match="No space left on device"):
        reading((RECORDED / "no_space.json").read_text())


def test_what_the_document_says_of_a_full_disk_comes_before_stderr() -> None:
    """The document names the place, stderr does not."""
    text = (RECORDED / "no_space.json").read_text()
    output = ToolOutput(stdout=text, stderr="fslab-engine: No space left on device", duration_s=1.0)
    with pytest.raises(NoSpaceError) as caught:
        read(ENGINE, ENGINE.parse_parameters({}), output)
    assert caught.value.where
    with pytest.raises(NoSpaceError, match="engine: no space left"):
        read(ENGINE, ENGINE.parse_parameters({}), replace(output, stdout=""))


def test_any_other_error_is_reported() -> None:
    with pytest.raises(ToolFailedError, match="cannot open /nonexistent") as caught:
        reading((PROTOCOL / "error.json").read_text())
    assert caught.value.where == "/nonexistent"


def test_another_protocol_is_refused() -> None:
    with pytest.raises(ToolOutputError, match="uses protocol 2") as caught:
        reading(changed(protocol=2))
    assert "reinstall" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["", "Usage: fslab-engine", "[]", '{"protocol": 1}'])
def test_output_that_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(ToolOutputError):
        reading(text)


def test_an_operation_that_is_missing_is_refused() -> None:
    with pytest.raises(ToolOutputError, match="create"):
        reading((RECORDED / "stat-read.json").read_text(), operations="create")


def test_commands_of_all_operations() -> None:
    commands = ENGINE.commands(ENGINE.parse_parameters({}), JOB)
    assert commands.prepare == commands.cleanup == ()
    assert " ".join(commands.run) == (
        "fslab-engine small-files /mnt/x --files=10000 --dirs=1 --size=4k --threads=1 --latency=operation --seed=7"
        " --operations=create,stat,read,delete --interval=200ms --json"
    )


def test_without_latencies_a_series_would_cost_a_clock_reading() -> None:
    commands = ENGINE.commands(ENGINE.parse_parameters({"latency": "off"}), JOB)
    assert not [word for word in commands.run if "interval" in word]


def test_the_rate_over_time_without_its_last_interval() -> None:
    operations = json.loads(changed())["operations"]
    operations[0]["series"] = {"interval_seconds": 0.5, "counts": [5645, 5319, 5590, 3446]}
    rate = reading(changed(operations=operations)).rates[0]
    assert (rate.what, rate.interval_s, rate.values) == ("create rate", 0.5, (11290.0, 10638.0, 11180.0))


def test_commands_prepare_what_is_missing_and_remove_what_is_left() -> None:
    parameters = ENGINE.parse_parameters({"operations": "read", "fsync": True, "syncfs": False, "size": 0})
    commands = ENGINE.commands(parameters, JOB)
    common = (
        "fslab-engine small-files /mnt/x --files=10000 --dirs=1 --size=0 --fsync --no-syncfs --threads=1"
        " --latency=operation --seed=7 --operations="
    )
    assert [" ".join(argv) for argv in commands.prepare] == [f"{common}create --interval=200ms --json"]
    assert " ".join(commands.run) == f"{common}read --interval=200ms --json"
    assert [" ".join(argv) for argv in commands.cleanup] == [f"{common}delete --interval=200ms --json"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("operations", "create,reed"),
        ("operations", "read,create"),
        ("operations", "read,read"),
        ("operations", "create,"),
        ("operations", "unlink"),
        ("pattern", "x"),
        ("scale", 0.1),
        ("order", "depth"),
        ("operation", "large-files"),
        ("size", "4x"),
        ("files", 0),
        ("thread", 2),
    ],
)
def test_mistakes(key: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        ENGINE.parse_parameters({key: value})
    assert [found["loc"] for found in caught.value.errors()] == [(key,)]


@pytest.mark.parametrize(
    ("operations", "headline"),
    [
        ("create,stat,read,delete", ("create_rate", "delete_rate")),
        ("create,delete", ("create_rate", "delete_rate")),
        ("read", ("read_rate",)),
        ("stat,read,delete", ("stat_rate", "read_rate", "delete_rate")),
    ],
)
def test_headlines(operations: str, headline: tuple[str, ...]) -> None:
    parameters = ENGINE.parse_parameters({"operations": operations})
    assert ENGINE.headline(parameters) == headline
    assert tuple(metric.name for metric in ENGINE.metrics(parameters))[: len(headline)] == headline


def test_estimates() -> None:
    parameters = ENGINE.parse_parameters({"files": 1000, "size": "5k", "dirs": 2})
    # Two blocks and an inode per file, and two directories.
    assert ENGINE.space_bytes(parameters) == 1000 * (8192 + 1024) + 2 * 4096
    assert ENGINE.written_bytes(parameters) == ENGINE.space_bytes(parameters)
    assert ENGINE.written_bytes(ENGINE.parse_parameters({"files": 1000, "operations": "read"})) == 0
    slow = ENGINE.parse_parameters({"files": 1000, "fsync": True})
    assert ENGINE.expected_s(slow) > ENGINE.expected_s(parameters)


def test_lengths_from_a_range_and_a_random_order_of_reads() -> None:
    raw = {"files": 100, "size": "1k", "max-size": "9kb", "order": "random", "operations": "read"}
    parameters = ENGINE.parse_parameters(raw)
    commands = ENGINE.commands(parameters, Job(directory=Path("/d"), scratch=Path("/s"), seed=3))
    for argv in (*commands.prepare, commands.run, *commands.cleanup):
        assert {"--size=1k", "--max-size=9k", "--order=random", "--seed=3"} <= set(argv)
    assert ENGINE.space_bytes(parameters) >= 100 * 5 * 1024
    for wrong, what in (
        ({"size": "4k", "max-size": "1k"}, "smaller than 'size'"),
        ({"order": "depth"}, "unknown order"),
    ):
        with pytest.raises(ValidationError, match=what):
            ENGINE.parse_parameters(wrong)
