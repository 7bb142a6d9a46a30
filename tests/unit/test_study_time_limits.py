"""Tests of expected durations: a study with a workload that takes days is refused, unless its time limit allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fslab.errors import StudyError
from fslab.plan.expand import expand
from fslab.study.load import load, load_text
from fslab.study.shipped import ids
from fslab.workloads import parsed
from fslab.workloads._fio_one_job import OneJob

STUDY = """\
title: t
media: {{m: {{type: loop, size: 4g}}}}
stacks: {{fs: {{medium: m, filesystem: ext4}}}}
workloads: {{w: {{{keys}}}}}
"""


@pytest.mark.parametrize(
    "keys",
    [
        "tool: fio, rw: randread, size: 64m, runtime: 9999d",
        "tool: fio, rw: read, size: 64m, loops: 999999999",
        "tool: fio, rw: write, size: 1m, io_size: 900t",
        "tool: fio, rw: write, size: 1m, rate: 1",
        "tool: fio, rw: write, size: 1g, rate_iops: 1",
        "tool: fio, rw: write, size: 1m, thinktime: 9999999999",
        "tool: fio, rw: write, size: 1m, startdelay: 9999d",
        "tool: dd, op: write, bs: 1, count: 4000000000000",
        "tool: sysbench, file-test-mode: rndrd, file-total-size: 64m, events: 999999999999",
        "tool: sysbench, file-test-mode: rndrd, file-total-size: 64m, events: 1000000, rate: 1",
        "tool: engine, operation: small-files, files: 999999999999",
        "tool: filebench, personality: varmail, runtime: 9999d",
        "tool: command, run: 'true', takes: 9999d",
        "tool: mixed, runtime: 9999d, parts: {a: {tool: fio, rw: read, size: 1m}, b: {tool: fio, rw: write, size: 1m}}",
    ],
)
def test_what_takes_days_has_to_be_allowed_them(keys: str) -> None:
    with pytest.raises(
        StudyError, match=r"workloads\.w: 'w' takes about .* h .*; if it may, set 'time_limit'"
    ):
        load_text(STUDY.format(keys=keys), "t.yaml")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("runtime: 99999d", r"t\.yaml:4: workloads\.w\.runtime: .* longer than 100 years"),
        ("nrfiles: 999999999", r"workloads\.w\.nrfiles: .* less than one byte"),  # fio would abort
    ],
)
def test_what_is_beyond_all_bounds_is_a_mistake_at_its_line(key: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        load_text(STUDY.format(keys=f"tool: fio, rw: read, size: 1m, {key}"), "t.yaml")


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("tool: filebench, personality: varmail", "runtime"),
        ("tool: postgresql", "runtime"),
        ("tool: command, run: 'sleep {runtime}'", "runtime"),
        ("tool: command, run: 'true'", "takes"),
        (
            "tool: mixed, parts: {a: {tool: dd, op: write, count: 1}, b: {tool: dd, op: read, count: 1}}",
            "runtime",
        ),
    ],
)
def test_a_duration_of_a_tool_is_some_time_also_as_a_number_of_seconds(keys: str, key: str) -> None:
    (cell,) = expand(load_text(STUDY.format(keys=f"{keys}, {key}: 90"), "t.yaml"))
    assert getattr(parsed(cell.workload).parameters, key) == "90"
    for wrong, why in (("0s", "must be greater than zero"), ("true", "a duration is"), ("soon", "is not a")):
        with pytest.raises(StudyError, match=rf"t\.yaml:4: workloads\.w\.{key}: .*{why}"):
            load_text(STUDY.format(keys=f"{keys}, {key}: {wrong}"), "t.yaml")


def test_a_job_file_is_held_against_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.fio").write_text("[a]\nrw=read\nsize=64m\nloops=999999999\n[b]\nrw=read\nsize=1m\n")
    study = tmp_path / "t.yaml"
    study.write_text(STUDY.format(keys="tool: fio, file: a.fio"))
    with pytest.raises(StudyError, match="set 'time_limit'"):
        load(str(study))
    (tmp_path / "a.fio").write_text("[a]\nrw=read\nsize=64m\nloops=999999999\nruntime=10s\n")
    (cell,) = expand(load(str(study)))
    assert parsed(cell.workload).expected_s() < 20


def test_a_study_that_allows_days_gets_them() -> None:
    keys = "tool: fio, rw: randread, size: 64m, runtime: 4d, time_limit: 5d"
    (cell,) = expand(load_text(STUDY.format(keys=keys), "t.yaml"))
    assert cell.time_limit_s == 5 * 86400


def test_shipped_studies_are_never_that_long() -> None:
    for name in ids():
        load(name)


MIX = {"rw": "rw", "rwmixread": "75"}


@pytest.mark.parametrize(
    ("options", "figure", "expected"),
    [
        ({}, "moved_bytes", 64 << 10),
        ({"io_size": "1m", "loops": "3"}, "moved_bytes", 3 << 20),
        ({"loops": "100", "number_ios": "10", "bs": "8k"}, "moved_bytes", 80 << 10),
        ({"rate": "1k,9k"}, "held_back_s", 64),
        ({"rate": "9k,1k", "rw": "write"}, "held_back_s", 64),
        ({"rate_iops": "4", "rw": "write"}, "held_back_s", 4),
        ({"rate_iops": ",4", "rw": "write"}, "held_back_s", 4),
        ({"rate_iops": ",4"}, "held_back_s", 0),
        ({"rate_iops": "6,4", **MIX}, "held_back_s", 2),
        ({"rate_iops": "6,1", **MIX}, "held_back_s", 4),
        ({"thinktime": "500", "thinktime_blocks": "2", "size": "32k"}, "held_back_s", 4 * 500e-6),
        ({"thinktime": "2s", "startdelay": "9", "size": "4k"}, "held_back_s", 2),
        ({"startdelay": "1-9"}, "delay_s", 1),
        ({"rate": "what"}, "held_back_s", 0),
    ],
)
def test_what_options_make_of_a_size(options: dict[str, str], figure: str, expected: float) -> None:
    """As documented by fio, ``io_size`` replaces the size, ``loops`` multiplies it, and ``number_ios`` limits it.

    ``rate``, ``rate_iops``, ``thinktime`` and ``startdelay`` add time.
    """
    assert getattr(OneJob(section="j", options={"size": "64k", **options}), figure) == expected
