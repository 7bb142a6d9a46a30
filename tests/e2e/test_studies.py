"""The shipped studies as a user runs them, at the smallest scale, and what this machine cannot do in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab

pytestmark = pytest.mark.root

IMPOSSIBLE = """
title: one that no kernel here has
media: {memory: {type: ram, size: 320m}}
stacks: {fs: {medium: memory, filesystem: [ext4, reiser4]}}
workloads:
  files: {tool: engine, operation: small-files, files: 500, size: 4k, operations: "create,delete"}
trials: 2
"""


def test_a_stack_that_this_machine_cannot_build_stays_in_the_table_and_costs_nothing(
    fslab: Fslab, tmp_path: Path
) -> None:
    (tmp_path / "two.yaml").write_text(IMPOSSIBLE)
    done = fslab("run", "two.yaml")
    assert "not possible here" in done.stdout
    assert "never in Linux itself" in done.stdout
    assert "a kernel that has it makes it possible" in done.stderr
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
