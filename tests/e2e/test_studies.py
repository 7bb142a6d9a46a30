"""Tests of the shipped studies at the smallest scale, and of stacks that this machine cannot build."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab

from fslab.cell import MachineSpec
from fslab.machine.kinds import REGISTRY

pytestmark = pytest.mark.root

IMPOSSIBLE = """
title: one that no kernel here has
media: {memory: {type: ram, size: 320m, room: 320m}}
stacks: {fs: {medium: memory, filesystem: [ext4, reiser4]}}
workloads:
  files: {tool: engine, operation: small-files, files: 500, size: 4k, operations: "create,delete"}
trials: 2
cache: warm
"""


def test_a_stack_that_this_machine_cannot_build_stays_in_the_table_and_costs_nothing(
    fslab: Fslab, tmp_path: Path
) -> None:
    (tmp_path / "two.yaml").write_text(IMPOSSIBLE)
    done = fslab("run", "two.yaml")
    assert "not possible here" in " ".join(done.stdout.split())
    assert "never in Linux itself" in " ".join(fslab("results", "--notes").stdout.split())
    assert "use a kernel that has it" in done.stderr
    assert "[2/2]" in done.stderr
    statuses = sorted((trial["stack"]["filesystem"], trial["status"]) for trial in fslab.trials())
    assert [status for _, status in statuses if status == "unsupported"] == ["unsupported"]
    assert len(statuses) == 3
    found = fslab.json("results", "--json")
    assert found["status"] == "finished"
    assert (found["counts"]["failed"], found["counts"]["impossible"]) == (1, 1)


def test_a_study_of_impossible_stacks_only_is_refused_with_the_reason(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(IMPOSSIBLE.replace("[ext4, reiser4]", "reiser4"))
    assert "never in Linux itself" in fslab("run", "one.yaml", code=4).stderr


def test_a_scale_is_said_in_the_plan_kept_with_the_campaign_and_resumed(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(IMPOSSIBLE.replace("files: 500", "files: 50000"))
    said = fslab("plan", "two.yaml", "--scale", "0.004").stdout
    assert "workloads.files: files 50000 → 200" in said
    assert "costs" in said
    fslab("run", "two.yaml", "--scale", "0.004")
    assert {trial["workload"]["parameters"]["files"] for trial in fslab.trials()} == {200}
    fslab("run", "--resume", code=7)


# Settings that make a study short, besides the smallest scale and one trial.
TINY = {
    "ext-generations": ("--set", "stacks.fs.filesystem=[ext2,ext4]"),
    "loop-vm": (),
}


@pytest.mark.slow
@pytest.mark.parametrize("study", sorted(TINY))
def test_a_study_on_the_host_goes_through_and_answers_its_claims(study: str, fslab: Fslab) -> None:
    fslab("run", study, "--scale", "0.001", "--trials", "1", "--budget", "4m", *TINY[study])
    trials = fslab.trials()
    assert {trial["status"] for trial in trials} <= {"ok", "invalid"}
    found = fslab.json("claims", "last", "--json")
    assert found


GUESTS = {
    "iozone-ssd-hdd": (
        "--set",
        "workloads.iozone-large.size=96m",
        "--set",
        "workloads.iozone-large.record=8m",
    ),
    "multi-disk": (
        "--set", "workloads.bonnie-data.size=16m", "--set", "workloads.bonnie-files.files=1024",
        "--set", "stacks.disks.filesystem=xfs", "--set", "stacks.chunks.filesystem=ext4",
    ),
    "nas-file-management": ("--set", "stacks.fs.filesystem=f2fs"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("study", sorted(GUESTS))
def test_a_study_in_a_guest_goes_through(study: str, fslab: Fslab) -> None:
    if missing := REGISTRY.get("uml").missing(MachineSpec(type="uml")):
        pytest.skip(f"{missing[0].what}: {missing[0].remedy}")
    fslab("run", study, "--on", "uml", "--scale", "0.0002", "--trials", "1", "--budget", "4m", *GUESTS[study])
    trials = fslab.trials()
    assert {trial["status"] for trial in trials} <= {"ok", "invalid", "unsupported"}
    impossible = {trial["stack"]["filesystem"] for trial in trials if trial["status"] == "unsupported"}
    assert impossible == ({"reiser4"} if study == "iozone-ssd-hdd" else set())
    assert fslab.json("claims", "last", "--json")


@pytest.mark.slow
def test_a_narrowed_study_at_the_smallest_scale_still_answers_its_claims(fslab: Fslab) -> None:
    only = (
        "media.disk.size=256m",
        "stacks.fs.filesystem=[ext2,ext4]",
        "stacks.fs.workloads=[filebench-randread-512k,engine-cat]",
    )
    settings = [word for each in only for word in ("--set", each)]
    fslab("run", "ext-generations", "--scale", "0.001", "--trials", "1", *settings)
    trials = fslab.trials()
    assert len(trials) == 4
    assert {trial["status"] for trial in trials} <= {"ok", "invalid"}
    assert "not measured here" in fslab("claims", "last").stdout
