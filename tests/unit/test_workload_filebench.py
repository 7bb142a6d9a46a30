"""Tests of the workload ``filebench``, with the golden document of ``fslab-engine wml``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.read import read_whole

from fslab.workloads import REGISTRY, Job, Reading, ToolOutput

GOLDEN = Path(__file__).parents[2] / "engine/golden"
FILEBENCH = REGISTRY.get("filebench")
JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=7)
DIGEST = "0" * 64


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((GOLDEN / "wml.json").read_text())
    return loaded


def reading(text: str, **raw: Any) -> Reading:
    return read_whole(
        FILEBENCH, {"personality": "varmail", **raw}, ToolOutput(stdout=text, stderr="", duration_s=1.0)
    )


def test_the_figures_of_a_run() -> None:
    golden = document()
    (operation,) = golden["operations"]
    summary = golden["answer"]["runs"][0]["summary"]
    found = reading(json.dumps(golden), syncfs=True)
    assert found.metrics["ops_rate"] == operation["rate_per_second"]
    assert found.metrics["latency_p99"] == summary["latency_ns"]["p99"]
    assert found.metrics["latency_mean"] == summary["latency_ns"]["mean"]
    cpu_s = operation["cpu_user_seconds"] + operation["cpu_system_seconds"]
    assert found.metrics["cpu"] == pytest.approx(cpu_s * 1e9 / operation["count"])
    flowops = {flowop["name"]: flowop for flowop in golden["answer"]["runs"][0]["flowops"]}
    assert found.read_bytes == flowops["read"]["bytes"] + flowops["readtoreply"]["bytes"]
    assert found.written_bytes == flowops["appendnew"]["bytes"] + flowops["appendreply"]["bytes"]
    assert found.measured_s == operation["seconds"]
    assert found.working_set_bytes == golden["answer"]["filesets"][0]["bytes"]
    assert found.flushed is True
    assert found.messages == ()
    assert found.asked_s == 60
    assert found.threads == golden["threads"]


def test_all_rates_include_the_final_sync() -> None:
    golden = document()
    (run,), (operation,) = golden["answer"]["runs"], golden["operations"]
    operation.update(sync_seconds=run["seconds"], seconds=2 * run["seconds"])
    found = reading(json.dumps(golden), syncfs=True)
    for name in ("read", "write"):
        assert found.metrics[f"{name}_rate"] == pytest.approx(run["summary"][f"{name}s_per_second"] / 2)


def test_a_write_without_an_fsync_may_not_have_reached_the_device() -> None:
    golden = document()
    assert reading(json.dumps(golden)).flushed is True  # varmail calls fsync after every append
    for flowop in golden["answer"]["runs"][0]["flowops"]:
        if flowop["name"] == "fsyncreply":
            flowop["count"] //= 2
        elif flowop["name"] == "appendreply":
            append = flowop
    assert reading(json.dumps(golden)).flushed is False
    append["synced"] = append["count"]  # opened with dsync
    assert reading(json.dumps(golden)).flushed is True


def test_work_that_is_done_was_not_to_take_a_set_time() -> None:
    golden = document()
    golden["answer"]["runs"][0]["ended"] = "done"
    assert reading(json.dumps(golden)).asked_s is None


def test_a_run_without_an_operation_is_unknown_not_zero() -> None:
    golden = document()
    summary = golden["answer"]["runs"][0]["summary"]
    summary.update(count=0, latency_ns=None, bytes_written=0)
    golden["operations"][0].update(count=0, rate_per_second=None)
    found = reading(json.dumps(golden))
    assert (found.metrics["latency_p99"], found.metrics["cpu"], found.metrics["ops_rate"]) == (
        None,
        None,
        None,
    )
    assert found.flushed is None


def test_warnings_of_the_engine_are_passed_on() -> None:
    golden = {**document(), "warnings": [{"kind": "out_of_files", "message": "the run ended early"}]}
    assert reading(json.dumps(golden)).messages == ("fslab-engine: the run ended early",)


def test_the_files_are_made_before_and_taken_by_the_run() -> None:
    raw = {"personality": "varmail", "runtime": "5s", "nfiles": 100, "nthreads": 4, "set": "iosize=4k"}
    commands = FILEBENCH.commands(FILEBENCH.parse_parameters(raw), JOB)
    common = (
        "fslab-engine", "wml", "varmail", "--dir", "/mnt/x", "--set=nfiles=100", "--set=nthreads=4",
        "--set=iosize=4k", "--run=5", "--seed=7", "--json",
    )  # fmt: skip
    assert commands.prepare == ((*common, "--create-only"),)
    assert commands.run == (*common, "--reuse")


def test_a_script_and_a_file() -> None:
    script = FILEBENCH.commands(FILEBENCH.parse_parameters({"script": "run 5"}), JOB).run
    assert script[:3] == ("fslab-engine", "wml", "--script=run 5")
    file = {"file": "/srv/mine.f", "file_text": "run 5", "digest": DIGEST, "syncfs": True}
    argv = FILEBENCH.commands(FILEBENCH.parse_parameters(file), JOB).run
    assert argv[2] == str(JOB.scratch / "workload.f"), "the stored text, never the file of that name"
    assert {f"--digest={DIGEST}", "--syncfs"} <= set(argv)


def test_room_and_time() -> None:
    def about(**raw: Any) -> tuple[int, float]:
        parameters = FILEBENCH.parse_parameters(raw)
        return FILEBENCH.space_bytes(parameters), FILEBENCH.expected_s(parameters)

    # 3 × 100 files of 4 KiB, each with another block and an inode of 1 KiB. 100 files at 20,000/s, 400 KiB at 400 MB/s.
    room, seconds = about(personality="varmail", nfiles=100, meanfilesize="4k", runtime=10)
    assert room == 3 * 100 * (4096 + 4096 + 1024)
    assert seconds == pytest.approx(10 + 0.005 + 0.001024)
    assert about(personality="randomread", set="filesize=8m", runtime=1)[0] == 10 << 20
    assert about(personality="varmail", set="nfiles=100 $meanfilesize=4k", runtime=10) == (room, seconds)
    assert about(personality="varmail", set="nfiles=2*50") == about(personality="varmail")  # for the engine
    videos = about(personality="videoserver", set="filesize=10m numactivevids=4 numpassivevids=8")[0]
    assert videos == 3 * 12 * ((10 << 20) + 4096 + 1024)
    assert about(personality="makedirs", set="ndirs=100")[0] == 3 * 100 * (4096 + 1024)
    assert about(script="run 1", space="3g")[0] == 3 << 30
    assert about(script="run 1", runtime=2) == (1 << 30, 2)


def test_a_scale_shrinks_time_and_files() -> None:
    raw = {"personality": "varmail", "nfiles": 5000, "runtime": "60s"}
    changes = FILEBENCH.scaled(FILEBENCH.parse_parameters(raw), 0.1)
    assert {key: change.value for key, change in changes.items()} == {"nfiles": 500, "runtime": "6s"}
    assert set(FILEBENCH.scaled(FILEBENCH.parse_parameters({"script": "run"}), 0.5)) == {"runtime"}


@pytest.mark.parametrize(
    ("raw", "scaled", "left"),
    [
        ({"personality": "varmail", "set": "$nfiles=400k meanfilesize=4k nfiles=200"},
         "$nfiles=40960 meanfilesize=4k nfiles=100", ()),
        ({"personality": "videoserver", "set": "filesize=1g numactivevids=40 numpassivevids=3"},
         "filesize=1g numactivevids=4 numpassivevids=1", ()),
        ({"personality": "randomread", "set": "filesize=5g workingset=0 iosize=4k"},
         "filesize=512m workingset=0 iosize=4k", ()),
        ({"personality": "removedirs", "set": "ndirs=2*n"}, None, ("set ndirs",)),
        ({"script": "run", "set": "ndirs=5000 filesize=1g nthreads=4"}, None, ("set ndirs", "set filesize")),
        ({"script": "run", "set": "nfiles=5000 big=1g"}, "nfiles=500 big=1g", ("set big",)),
    ],
)  # fmt: skip
def test_variables_are_scaled_where_it_is_known_that_they_are_amounts(
    raw: dict[str, Any], scaled: str | None, left: tuple[str, ...]
) -> None:
    parameters = FILEBENCH.parse_parameters(raw)
    found = FILEBENCH.scaled(parameters, 0.1).get("set")
    assert (found and found.value) == scaled
    assert FILEBENCH.unscaled(parameters) == left


@pytest.mark.parametrize(
    ("raw", "headline"),
    [
        ({"personality": "varmail"}, ("ops_rate",)),
        ({"personality": "varmail", "set": "eventrate=100"}, ("latency_mean", "ops_rate")),
        ({"personality": "videoserver"}, ("latency_mean", "ops_rate")),
    ],
)
def test_the_latency_of_a_workload_that_goes_by_the_clock_comes_before_its_rate(
    raw: dict[str, str], headline: tuple[str, ...]
) -> None:
    parameters = FILEBENCH.Parameters.model_validate(raw)
    assert FILEBENCH.headline(parameters) == headline
    assert tuple(metric.name for metric in FILEBENCH.metrics(parameters))[: len(headline)] == headline
