"""Tests of which workloads are measured in slices, what their commands are then, and what a plan says of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.test_plan import plan_of

from fslab.cli.plan import _slices
from fslab.workloads import REGISTRY, Job, ToolOutput

JOB = Job(directory=Path("/mnt/x"), scratch=Path("/run/s"), seed=8, turns=3)
TEXT = """\
title: t
media:
  m: {type: ram, size: 1g}
  l: {type: loop, size: 1g, direct_io: false}
  v: {type: virtual, size: 1g, profile: ssd-sata}
  d: {type: directory, path: /srv}
stacks: {fs: {medium: m, filesystem: [ext4, xfs]}}
workloads: {w: {tool: fio, rw: randread, size: 64m, runtime: 2s}}
slices: auto
"""


@pytest.mark.parametrize(
    ("tool", "raw", "shown"),
    [
        # Each runs for as long as before, while two others have their turns.
        ("sysbench", {"file-test-mode": "rndrd", "time": 2}, "--time=6"),
        ("sysbench", {"file-test-mode": "rndrd", "events": 500}, "--time=0"),
        ("filebench", {"personality": "varmail", "runtime": "2s"}, "--run=6"),
        ("command", {"run": "pgbench -T {runtime}", "runtime": "2s", "interruptible": True}, "6"),
        ("bonnie", {"size": "64m", "ram": "0", "files": 0}, "bonnie++"),
        ("iozone", {"size": "64m", "program": "engine"}, "iozone"),
        ("shell", {"operation": "create"}, "sh"),
        ("dd", {"op": "write", "count": 64}, "iflag=fullblock"),
    ],
)
def test_tools_in_slices(tool: str, raw: dict[str, Any], shown: str) -> None:
    workload = REGISTRY.get(tool)
    parameters = workload.parse_parameters(raw)
    assert workload.why_whole(parameters) is None
    assert shown in workload.commands(parameters, JOB).run


@pytest.mark.parametrize(
    ("tool", "raw", "why"),
    [
        ("sysbench", {"file-test-mode": "rndrd", "rate": 10}, "'rate' of sysbench goes by the clock"),
        ("filebench", {"personality": "videoserver"}, "by the clock"),
        ("filebench", {"personality": "oltp", "set": "eventrate=10"}, "by the clock"),
        ("filebench", {"script": "eventgen rate=10"}, "by the clock"),
        ("command", {"run": "make"}, "only with 'interruptible: true'"),
        ("bonnie", {"size": "0", "files": 1024}, "writes back all file systems"),
        ("iozone", {"size": "64m"}, "'program: engine' does"),
        ("iozone", {"size": "64m", "program": "engine", "threads": 2}, "end by the clock"),
    ],
)
def test_tools_that_run_whole(tool: str, raw: dict[str, Any], why: str) -> None:
    workload = REGISTRY.get(tool)
    assert why in (workload.why_whole(workload.parse_parameters(raw)) or "")


def test_a_run_time_and_its_place_need_each_other() -> None:
    for raw in ({"run": "pgbench -T {runtime}"}, {"run": "make", "runtime": "2s"}):
        with pytest.raises(ValueError, match="need each other"):
            REGISTRY.get("command").parse_parameters(raw)


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        ((), None),
        (("stacks.fs.on=uml",), "runs in a guest"),
        (("stacks.fs.medium=v",), None),
        (("fresh=cell",), "file systems last"),
        (("tuning.cpu_dma_latency=0",), None),
        (("stacks.fs.tuning.cpu_dma_latency=[0, 100]",), "different settings of the machine"),
        (("stacks.fs.tuning.io_scheduler=[none, mq-deadline]",), None),
        (("workloads.w.rate=1m",), "'rate' of fio goes by the clock"),
        (
            ("stacks.fs.mount_options=[relatime, noatime, sync, dirsync, nodiratime]",),
            "10 stacks, of which at most 8",
        ),
        (("slices=off",), None),
    ],
)
def test_a_plan_says_why_a_workload_is_not_in_slices(overrides: tuple[str, ...], why: str | None) -> None:
    plan = plan_of(TEXT, *overrides)
    assert (why is None) is (plan.whole == {})
    assert (why or "") in plan.whole.get("w", "")
    assert all(
        (cell.slice_s is None) is (why is not None or "slices=off" in overrides) for cell in plan.cells
    )


@pytest.mark.parametrize(
    ("overrides", "slice_s"),
    [
        ((), 0.02),  # in memory
        (("media.m.room=200m",), 0.02),
        (("workloads.w.rw=randwrite",), 0.05),  # leaves dirty pages
        (("stacks.fs.medium=l",), 0.05),
        (("stacks.fs.medium=l", "workloads.w.rw=randwrite"), 0.125),
        (("stacks.fs.medium=v", "media.v.profile=none"), 0.02),
        (("stacks.fs.medium=v",), 0.05),
        (("stacks.fs.medium=v", "workloads.w.rw=randwrite"), 0.05),  # the disk is halted with its tool
        (("stacks.fs.medium=v", "media.v.profile=hdd-7200"), 0.14),  # 20 seeks
        (("slices=100ms",), 0.1),
    ],
)
def test_the_length_of_a_slice(overrides: tuple[str, ...], slice_s: float) -> None:
    for cell in plan_of(TEXT, *overrides).cells:
        assert cell.slice_s == pytest.approx(slice_s, rel=0.05)


def test_a_plan_says_what_is_measured_whole_although_it_is_planned_in_slices() -> None:
    """How much a stack does in a slice is known only when it runs."""
    text = "in slices, the stacks in turns: w (20 ms); what a stack does within 8 slices is measured whole"
    assert list(_slices(plan_of(TEXT))) == [text]


def test_bonnie_says_when_each_test_begins_and_ends() -> None:
    """What bonnie++ 2.00a writes to standard error without -q."""
    said = (
        "Using uid:0, gid:0.\nWriting intelligently...done\nRewriting...done\nReading intelligently...done\n"
        "start 'em...done...done...done...\n"
    )
    golden = Path(__file__).parents[1] / "golden/bonnie-2.00a/fsync.stdout"
    bonnie = REGISTRY.get("bonnie")
    raw = {"size": "512m", "bs": "8k", "ram": "0", "seeks": 4096, "files": 0}
    parameters = bonnie.parse_parameters(raw)
    figures = golden.read_text().replace("+++++", "1000")  # all tests were long enough
    output = ToolOutput(stdout=figures, stderr=said, duration_s=1.0)
    found = bonnie.read(parameters, output)
    assert found.marks.keys() == found.parts_s.keys()
    begin, end = found.marks["rewrite"]
    assert said[:begin].endswith("Rewriting...")
    assert said[begin:end] == "done"
    begin, end = found.marks["seek"]
    assert said[begin:end] == "done...done...done..."
    assert "-q" not in bonnie.commands(parameters, JOB).run
    assert "-q" in bonnie.commands(parameters, replace(JOB, turns=1)).run
