"""Tests of ``fslab compare`` and ``fslab history`` with real campaigns on a directory.

Campaigns are also compared from exports. Campaigns of different studies are refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Fslab

STUDY = """
title: twice the same
media: {here: {type: directory, path: .}}
stacks: {here: {medium: here}}
workloads:
  write: {tool: dd, op: write, bs: 64k, count: 64}
  files: {tool: engine, operation: small-files, files: 200, size: 4k, operations: "create,delete"}
trials: 4
cache: warm
"""


@pytest.fixture
def twice(fslab: Fslab, tmp_path: Path) -> Fslab:
    """Return fslab with two campaigns of one small study in its store."""
    (tmp_path / "twice.yaml").write_text(STUDY)
    for _ in range(2):
        fslab("run", "--quiet", "twice.yaml")
    return fslab


def ratios(document: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(line["workload"], line["metric"]): line["answer"]["ratio"] for line in document["lines"]}


def test_two_campaigns_side_by_side(twice: Fslab, tmp_path: Path) -> None:
    said = twice("compare").stdout
    for words in ("A  ", "B  ", "8 trials: ", "write, ", "files, ", "B ÷ A (95 % CI)"):
        assert words in said
    document = twice.json("compare", "last~1", "last", "--json")
    assert {line["workload"] for line in document["lines"]} == {"write", "files"}
    assert all(len(line["a"]["values"]) == len(line["b"]["values"]) == 4 for line in document["lines"])
    assert [
        each["fact"] for each in document["differences"] if each["decisive"] and each["a"] and each["b"]
    ] == []
    for number, name in enumerate(("last~1", "last")):
        twice("export", name, "--output", f"{number}.json")
    from_files = twice.json("compare", "0.json", "1.json", "--json")
    assert ratios(from_files) == ratios(document)
    # B's bandwidth is a tenth of A's, with a scatter below 1 %: four trials each show that B is slower. The other way
    # round, B is faster, which is no failure.
    for number, bandwidth in enumerate((1e9, 1e8)):
        trials = json.loads((tmp_path / f"{number}.json").read_text())
        for place, trial in enumerate(trials):
            if "write_bandwidth" in trial["metrics"]:
                trial["metrics"]["write_bandwidth"]["value"] = bandwidth * (1 + place / 1000)
        (tmp_path / f"{number}.json").write_text(json.dumps(trials))
    only = ("--metric", "write_bandwidth", "--json")
    failed = twice("compare", "0.json", "1.json", "--fail-if-slower", "5%", *only, code=10)
    assert "1 of 1 comparisons are slower by 5.0 % or more" in failed.stderr
    twice("compare", "1.json", "0.json", "--fail-if-slower", "5%", *only)


@pytest.mark.slow
def test_another_study_or_setting_is_refused_and_named(twice: Fslab) -> None:
    twice("run", "--quiet", "twice.yaml", "--set", "workloads.write.bs=128k")
    refused = twice("compare", code=9)
    assert "parameters.bs: 64k → 128k" in refused.stderr
    assert "--differing study" in refused.stderr
    assert "differs: parameters.bs: 64k → 128k" in twice("compare", "--differing", "study").stdout
    assert "differs: parameters.bs" in twice("compare", "--force").stdout


@pytest.mark.root
@pytest.mark.slow
def test_two_stacks_of_one_campaign_are_compared_block_by_block(fslab: Fslab, tmp_path: Path) -> None:
    text = STUDY.replace("type: directory, path: .", "type: ram, size: 320m")
    (tmp_path / "two.yaml").write_text(
        text.replace("medium: here}", "medium: here, filesystem: [ext4, xfs]}")
    )
    fslab("run", "--quiet", "two.yaml")
    document = fslab.json("compare", "last", "--stack", "ext4", "--stack", "xfs", "--json")
    assert {line["stack"] for line in document["lines"]} == {"ext4 → xfs"}
    whole = [line for line in document["lines"] if len(line["a"]["values"]) == len(line["b"]["values"]) == 4]
    assert {line["answer"]["method"] for line in whole} <= {"paired_t"}
    assert document["differences"] == []
    fslab("compare", "last", "--stack", "zfs", "--stack", "xfs", code=2)


@pytest.mark.slow
def test_history_shows_both_and_says_what_it_cannot_tell_yet(twice: Fslab) -> None:
    document = twice.json("history", "twice", "--json")
    assert [len(series["points"]) for series in document["series"]] == [2] * len(document["series"])
    assert document["series"]
    said = twice("history", "--workload", "write").stdout
    assert "twice on " in said
    assert "2 campaigns" in said
    assert "from 10 campaigns on" in " ".join(said.split())


def test_help_names_the_exit_codes(fslab: Fslab) -> None:
    for verb in ("compare", "history"):
        said = fslab(verb, "--help").stdout
        assert "Examples:" in said
        assert "Exit codes:" in said
