"""Tests of the workload ``engine``, with golden documents of the protocol and output of fslab-engine 0.1.0.

On synthetic trees: correct and wrong answers.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read, read_whole

from fslab.errors import NoSpaceError
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

ROOT = Path(__file__).parents[2]
PROTOCOL = ROOT / "engine/golden"
RECORDED = ROOT / "tests/golden/fslab-engine-0.1.0"
ENGINE = REGISTRY.get("engine")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=7)
TREE = ("analyze", "classify", "duplicates", "search", "sync-read", "sync-write", "delete")


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
    assert found.metrics["create_p99"] == create["latency_ns"]["p99"]
    assert found.metrics["create_p99_9"] is None, "no file of less than 1,000 is above it"
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


def test_what_the_document_says_of_a_full_disk_comes_before_stderr() -> None:
    """The document names the place, stderr does not."""
    text = (RECORDED / "no_space.json").read_text()
    output = ToolOutput(stdout=text, stderr="fslab-engine: No space left on device", duration_s=1.0)
    with pytest.raises(NoSpaceError) as caught:
        read(ENGINE, ENGINE.parse_parameters({}), output)
    path = json.loads(text)["error"]["path"]
    assert str(caught.value).count(path) == 1
    with pytest.raises(NoSpaceError, match="engine: no space left"):
        read(ENGINE, ENGINE.parse_parameters({}), replace(output, stdout=""))


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


def golden(name: str) -> dict[str, Any]:
    return dict(json.loads((PROTOCOL / f"{name}.json").read_text()))


def answered(operation: str, document: dict[str, Any], manifest: dict[str, Any] | None = None) -> Reading:
    truth = json.dumps(manifest or golden("populate")["answer"])
    output = ToolOutput(
        stdout=json.dumps(document), stderr="", files={"manifest.json": truth}, duration_s=1.0
    )
    return read_whole(ENGINE, {"operation": operation, "threads": 2}, output)


@pytest.mark.parametrize("operation", TREE)
def test_the_golden_answers_are_right(operation: str) -> None:
    document = golden(operation)
    found = answered(operation, document)
    assert found.wrong == {}
    entry = next(entry for entry in document["operations"] if entry["name"] == operation)
    name = operation.replace("-", "_")
    assert found.metrics[f"{name}_rate"] == entry["rate_per_second"]
    assert found.metrics[f"{name}_p99"] == (entry["latency_ns"] or {"p99": None})["p99"]
    if operation in {"search", "sync-read", "sync-write"}:
        assert found.metrics[f"{name}_bandwidth"] == entry["bandwidth_bytes_per_second"]


@pytest.mark.parametrize(
    ("operation", "key", "value"),
    [
        ("analyze", "files", 199), ("analyze", "apparent_bytes", 6108756), ("analyze", "directories", 4),
        ("classify", "by_content", {}), ("duplicates", "sets", 33), ("duplicates", "digest", "0"),
        ("search", "files_matched", 12), ("search", "lines_matched", 40), ("sync-read", "bytes", 1),
        ("sync-write", "files", 0), ("delete", "files", 201),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_seen(operation: str, key: str, value: Any) -> None:
    document = golden(operation)
    document["answer"][key] = value
    wrong = answered(operation, document).wrong
    assert set(wrong) == {key}
    assert wrong[key][0] == value


def test_all_metadata_operations() -> None:
    document = golden("meta")
    parameters = ENGINE.parse_parameters({"operation": "meta", "files": 300, "dirs": 2})
    found = read(ENGINE, parameters, ToolOutput(stdout=json.dumps(document), stderr="", duration_s=1.0))
    entry = {entry["name"]: entry for entry in document["operations"]}
    assert found.metrics["open_close_rate"] == entry["open-close"]["rate_per_second"]
    assert found.metrics["rename_sync"] == entry["rename"]["sync_seconds"]
    assert "stat_sync" not in found.metrics


def command(**raw: Any) -> tuple[str, str]:
    commands = ENGINE.commands(ENGINE.parse_parameters(raw), JOB)
    (prepare,) = commands.prepare
    return " ".join(prepare), " ".join(commands.run)


def test_a_tree_is_made_with_one_thread_and_its_manifest_kept_elsewhere() -> None:
    prepare, run = command(operation="search", threads=4, scale=0.01)
    assert prepare == (
        "fslab-engine populate /mnt/x/tree --scale=0.01 --seed=1 --duplicates=0.1 --plant=fslab-needle:0.1:2"
        " --threads=1 --manifest=/run/s/manifest.json --json"
    )
    assert run == (
        "fslab-engine search /mnt/x/tree --pattern=fslab-needle --threads=4 --latency=operation --json"
    )


def test_own_options_reach_the_engine() -> None:
    assert (
        "/mnt/x/tree /mnt/x/copy --method=reflink --sync=file"
        in command(operation="sync-write", method="reflink", sync="file")[1]
    )
    assert (
        "--direct --buffer=1m --order=breadth"
        in command(operation="sync-read", direct=True, buffer="1m", order="breadth")[1]
    )
    prepare, run = command(
        operation="classify", by="name", classes="a:10:4k,b:2:1m:fixed", compressibility=0.3, scale=1
    )
    assert "--class=a:10:4k --class=b:2:1m:fixed --compressibility=0.3" in prepare
    assert "--by=name" in run
    assert "--no-syncfs" in command(operation="delete", syncfs=False)[1]


def test_the_study_s_data_set_is_costed() -> None:
    parameters = ENGINE.parse_parameters({"operation": "analyze", "scale": 0.002})
    # 900 × 32 KiB + 100 × 4 MiB + 2 × 100 MiB
    assert parameters.tree_bytes == 900 * (32 << 10) + 100 * (4 << 20) + 2 * (100 << 20)
    assert parameters.tree_files == 1002
    assert ENGINE.space_bytes(parameters) > parameters.tree_bytes
    mirrored = ENGINE.parse_parameters({"operation": "sync-write", "scale": 0.002})
    assert ENGINE.space_bytes(mirrored) == 2 * ENGINE.space_bytes(parameters)
    assert ENGINE.written_bytes(mirrored) == ENGINE.space_bytes(parameters)
    assert ENGINE.written_bytes(parameters) == 0


@pytest.mark.parametrize(
    "raw",
    [
        {"pattern": "a:b", "plant": "needle:0.1"},
        {"pattern": "^a: ?b$", "regex": True},
        {"pattern": "\u00fc" * 50},
    ],
)
def test_only_what_is_inserted_has_to_fit(raw: dict[str, Any]) -> None:
    assert f"--pattern={raw['pattern']}" in command(operation="search", **raw)[1]


def test_bytes_that_the_engine_does_not_tell_are_unknown_not_none_at_all() -> None:
    assert answered("classify", golden("classify")).read_bytes is None
    assert answered("sync-read", golden("sync-read")).read_bytes == 6108757
    assert answered("analyze", golden("analyze")).read_bytes == 0


def test_a_scaled_tree_keeps_some_files() -> None:
    classes = "a:1000:4k:fixed"
    written = ENGINE.parse_parameters({"operation": "delete", "classes": classes, "scale": 1})
    assert ENGINE.scaled(written, 0.5)["scale"].value == 0.5
    assert ENGINE.scaled(written, 0.0001)["scale"].value == 0.1, "100 files"
    assert ENGINE.scaled(written, 3.0)["scale"].value == 3.0
