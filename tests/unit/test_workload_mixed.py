"""Tests of the workload ``mixed``: parts that run at the same time, their commands, directories and metrics."""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fslab.errors import StudyError
from fslab.plan.expand import expand
from fslab.study.load import load_text
from fslab.validity.facts import Depth, Rate
from fslab.workloads import REGISTRY, Job, Reading, ToolOutput
from fslab.workloads.mixed import combined

MIXED = REGISTRY.get("mixed")
JOB = Job(directory=Path("/w"), scratch=Path("/s"), seed=7)
PARTS = {
    "parts.a.tool": "dd", "parts.a.op": "write", "parts.a.count": 4,
    "parts.b.tool": "command", "parts.b.run": "touch x",
}  # fmt: skip
STUDY = """\
title: t
media: {m: {type: ram, size: 2g}}
stacks: {s: {medium: m, filesystem: ext4}}
workloads: {w: {tool: mixed, runtime: 2s, parts: %s}}
"""


def test_the_commands_of_the_parts() -> None:
    commands = MIXED.commands(MIXED.parse_parameters(PARTS), JOB)
    assert commands.prepare == (("mkdir", "-p", "/w/a", "/s/a", "/w/b", "/s/b"),)
    assert commands.run[-7:] == (
        "/s", "a", "/w/a", "dd if=/dev/zero of=/w/a/fslab.dd bs=1M count=4 conv=fsync", "b", "/w/b", "touch x",
    )  # fmt: skip
    assert commands.cleanup == (("env", "-C", "/w/a", "rm", "-f", "/w/a/fslab.dd"),)


def test_figures_of_each_part_and_how_long_they_ran_together() -> None:
    parameters = MIXED.parse_parameters(PARTS)
    said = "4194304 bytes (4.2 MB, 4.0 MiB) copied, 2 s, 2.1 MB/s"
    files = {"together.json": json.dumps({"a": 2.0, "b": 0.5}), "a/stderr": said, "b/stdout": ""}
    reading = MIXED.read(parameters, ToolOutput(stdout="", stderr="", files=files, duration_s=2.1))
    assert reading.metrics == {"a_write_bandwidth": 2097152, "b_time": 0.5, "overlap": 25}
    assert set(reading.metrics) == {metric.name for metric in MIXED.metrics(parameters)}
    assert reading.messages == ("part 'b' ended after 500 ms, but the longest part ran for 2 s",)
    assert reading.parts_s == {"a": 2.0, "b": 0.5}
    assert reading.written_bytes is None  # unknown for a command
    assert MIXED.headline(parameters) == ("a_write_bandwidth", "b_time")


def test_no_fact_of_a_part_is_lost() -> None:
    deep, shallow = Depth(asked=8, at_least=7, at_most=8), Depth(asked=32, at_least=1, at_most=2)
    told = Reading(
        metrics={"x": 1.0}, latencies={"x": {50.0: 1.0}}, read_bytes=1, written_bytes=2, measured_s=3.0,
        parts_s={"x": 0.5}, direct=True, working_set_bytes=4, rounds=3, flushed=False, passes=3.0, depth=shallow,
        queue_in_tool=True, rates=(Rate(what="x", interval_s=1.0, values=(1.0,)),), errors={"x": 1},
        wrong={"x": (1, 2)}, messages=("m",), promises_broken=("lost",), mounts_damaged=True, disk_fails=True,
        zeros=True, repeats=True, drops=1,
    )  # fmt: skip
    silent = Reading(
        metrics={}, read_bytes=1, written_bytes=2, working_set_bytes=4, direct=True, passes=1.0, depth=deep
    )
    for parts in ({"a": told, "b": silent}, {"b": silent, "a": told}):
        found = combined(parts, {"a": 3.0, "b": 3.0})
        assert (found.passes, found.depth, found.parts_s) == (3.0, shallow, {"a x": 0.5})
        assert found.promises_broken == ("a: lost",)
        unset = {each.name for each in fields(found) if getattr(found, each.name) == _default(each)}
        assert unset == {
            "asked_s",
            "rounds",
            "windows",
            "marks",
            "whole_run",
            "threads",
            "counts",
            "percentiles",
            "part_rounds",
            "part_cpu_s",
            "part_windows",
            "sliced",
            "left_share",
            "together_share",
            "transactions",
        }  # each part has its own requested time and number of rounds
        assert found.working_set_bytes == 3 * 4 + 4


def test_direct_writes_of_a_part_are_not_left_in_memory() -> None:
    synced, direct = (Reading(metrics={}, flushed=flushed, direct=not flushed) for flushed in (True, False))
    assert combined({"a": synced, "b": direct}, {"a": 1.0, "b": 1.0}).flushed is True
    assert combined({"a": synced, "b": replace(direct, direct=False)}, {"a": 1.0, "b": 1.0}).flushed is False


def test_the_run_has_a_set_time_if_each_part_has_one() -> None:
    timed, work = (Reading(metrics={}, asked_s=asked_s) for asked_s in (2.0, None))
    assert combined({"a": timed, "b": replace(timed, asked_s=3.0)}, {"a": 2.0, "b": 3.0}).asked_s == 3
    assert combined({"a": timed, "b": work}, {"a": 2.0, "b": 3.0}).asked_s is None


def _default(fact: Field[Any]) -> Any:
    return fact.default_factory() if fact.default_factory is not MISSING else fact.default


def test_what_no_part_says_is_not_made_up() -> None:
    found = combined({"a": Reading(metrics={}), "b": Reading(metrics={})}, {})
    assert found == Reading(metrics={"overlap": None})


def test_a_list_within_a_part_is_an_axis_and_a_run_time_is_for_all() -> None:
    parts = (
        "{r: {tool: fio, rw: randread, size: 8m, bs: [4k, 64k]}, m: {tool: filebench, personality: varmail}}"
    )
    cells = expand(load_text(STUDY % parts, "s.yaml"))
    assert [cell.workload.name for cell in cells] == ["w[parts.r.bs=4k]", "w[parts.r.bs=64k]"]
    for cell in cells:
        parts_of = MIXED.parse_parameters(cell.workload.parameters).parts
        assert {part.parameters.runtime for part in parts_of.values()} == {"2s"}


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ("{a: {tool: fio, rw: read, size: 1m}}", "at least two"),
        ("[a, b]", "w.parts: 'parts' must map names to workloads, as in parts: {reader"),
        ("{a: fio, b: 3}", "w.parts.a: 'parts.a' must be a workload, as in"),
        ("{a: {tool: fio, rw: raed, size: 1m}, b: {tool: dd, op: read, count: 1}}", "parts.a.rw: part 'a'"),
        ("{a: {tool: foi}, b: {tool: dd, op: read, count: 1}}", "parts.a.tool: unknown tool 'foi'"),
        ("{a: {tool: mixed}, b: {tool: dd, op: read, count: 1}}", "unknown tool 'mixed'"),
        (
            "{a/b: {tool: dd, op: read, count: 1}, b: {tool: dd, op: read, count: 1}}",
            "is not a valid name of a part",
        ),
    ],
)
def test_mistakes(parts: str, what: str) -> None:
    with pytest.raises(StudyError, match=what):
        load_text(STUDY % parts, "s.yaml")


def test_unknown_keys() -> None:
    with pytest.raises((ValidationError, ValueError), match="unknown key"):
        MIXED.parse_parameters({**PARTS, "part.c.tool": "dd"})
