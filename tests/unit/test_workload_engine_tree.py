"""Tests of the engine's operations on synthetic trees, with golden documents: correct and wrong answers, commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.read import read, read_whole

from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

GOLDEN = Path(__file__).parents[2] / "engine/golden"
ENGINE = REGISTRY.get("engine")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=7)
TREE = ("analyze", "classify", "duplicates", "search", "sync-read", "sync-write", "delete")


def golden(name: str) -> dict[str, Any]:
    return dict(json.loads((GOLDEN / f"{name}.json").read_text()))


def reading(operation: str, document: dict[str, Any], manifest: dict[str, Any] | None = None) -> Reading:
    truth = json.dumps(manifest or golden("populate")["answer"])
    output = ToolOutput(
        stdout=json.dumps(document), stderr="", files={"manifest.json": truth}, duration_s=1.0
    )
    return read_whole(ENGINE, {"operation": operation, "threads": 2}, output)


@pytest.mark.parametrize("operation", TREE)
def test_the_golden_answers_are_right(operation: str) -> None:
    document = golden(operation)
    found = reading(operation, document)
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
    wrong = reading(operation, document).wrong
    assert set(wrong) == {key}
    assert wrong[key][0] == value


def test_all_metadata_operations() -> None:
    document = golden("meta")
    parameters = ENGINE.parse_parameters({"operation": "meta", "files": 300, "dirs": 2})
    found = read(ENGINE, parameters, ToolOutput(stdout=json.dumps(document), stderr="", duration_s=1.0))
    assert ENGINE.headline(parameters) == ("create_rate", "unlink_rate")
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
    ("raw", "says"),
    [
        ({"operation": "analyze", "pattern": "x"}, "not supported by 'analyze'"),
        ({"operation": "search", "by": "name"}, "use it with classify"),
        ({"operation": "meta", "operations": "create,fsync"}, "unknown operation 'fsync'"),
        ({"operation": "meta", "operations": "unlink,create"}, "in the order"),
        ({"operation": "analyze", "classes": "a:b:4k"}, "name:files:size"),
        ({"operation": "analyze", "classes": "a:1:4x"}, "not a size"),
        ({"operation": "search", "plant": "needle"}, "text:share"),
        (
            {"operation": "search", "plant": "need:0.1"},
            "'need' has 4 bytes; a text to insert must have 6 to 100",
        ),
        ({"operation": "analyze", "plant": "needle:0.1:0"}, "text:share"),
        ({"operation": "analyze", "plant": "needle:0.1:2:3"}, "text:share"),
        ({"operation": "search", "pattern": "error: 5"}, "'error: 5' contains ':'.* set 'plant' or 'regex'"),
        ({"operation": "search", "pattern": "needl"}, "'needl' has 5 bytes.* set 'plant' or 'regex'"),
        ({"operation": "search", "pattern": "n" * 101}, "has 101 bytes"),
        ({"operation": "search", "pattern": "\u00fc" * 51}, "has 102 bytes"),
        ({"operation": "search", "pattern": "one\ntwo"}, "must be one line"),
        ({"operation": "search", "pattern": "", "plant": "needle:0.1"}, "'pattern' must be one line"),
        ({"operation": "analyze", "classes": "a:\u00b2:4k"}, "name:files:size"),
        ({"operation": "analyze", "classes": "a:1:1.5k"}, "name:files:size"),
        ({"operation": "analyze", "classes": "a:1:4k:normal"}, "lognormal, uniform or fixed"),
        ({"operation": "analyze", "order": "random"}, "unknown order"),
        ({"operation": "sync-write", "method": "rsync"}, "reflink"),
    ],
)
def test_mistakes(raw: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ENGINE.parse_parameters(raw)


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
    assert reading("classify", golden("classify")).read_bytes is None
    assert reading("sync-read", golden("sync-read")).read_bytes == 6108757
    assert reading("analyze", golden("analyze")).read_bytes == 0


def test_a_scaled_tree_keeps_some_files() -> None:
    classes = "a:1000:4k:fixed"
    written = ENGINE.parse_parameters({"operation": "delete", "classes": classes, "scale": 1})
    assert ENGINE.scaled(written, 0.5)["scale"].value == 0.5
    assert ENGINE.scaled(written, 0.0001)["scale"].value == 0.1, "100 files"
    assert ENGINE.scaled(written, 3.0)["scale"].value == 3.0
    with pytest.raises(ValidationError, match="the tree has no file"):
        ENGINE.parse_parameters({"operation": "delete", "classes": classes, "scale": 0.0001})
