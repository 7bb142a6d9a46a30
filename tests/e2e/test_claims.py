"""Tests of ``fslab claims``: a publication is checked against its own tables, and a campaign decides claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab

# A directory medium: whoever runs the tests can measure it.
STUDY = """\
title: larger writes
media: {here: {type: directory, path: .}}
stacks: {here: {medium: here}}
workloads:
  write: {tool: fio, rw: randwrite, bs: [4k, 256k], size: 16m, direct: false, fsync: 1, runtime: 1100ms}
claims:
  - {says: Larger writes move more, metric: bandwidth, that: "each[bs=256k] > each[bs=4k]"}
  - {says: Larger writes move less, metric: bandwidth, that: "each[bs=4k] > each[bs=256k]"}
trials: 4
cache: warm
"""


def test_a_publication_is_judged_by_its_own_tables_without_a_run(fslab: Fslab) -> None:
    said = fslab("claims", "ext-generations", "--published").stdout
    assert "Sequential read: XFS is first at both sizes" in said
    assert "contradicted" in said
    document = json.loads(fslab("claims", "ext-generations", "--published", "--json").stdout)
    against = [one["id"] for one in document["claims"] if one["published"]["verdict"] == "contradicted"]
    assert against == ["1", "2b", "3c", "4a", "6a", "6c"]
    assert document["counts"]["published"] == {"holds": 8, "contradicted": 6}
    assert (document["counts"]["measured"], document["counts"]["tested"]) == ({}, 0)


def test_without_a_campaign_it_says_what_to_do(fslab: Fslab) -> None:
    said = fslab("claims", "ext-generations", code=7).stderr
    assert "the store does not exist" in said


def test_a_mistyped_study_is_recognised(measured: Fslab) -> None:
    asked = (("claims", "lop-vm", "--published"), ("claims", "lop-vm"), ("replicate", "lop-vm"))
    for argv in (*asked, ("run", "--resume", "lop-vm")):
        for store in ((), ("--store", "none.sqlite")) if argv in asked else ((),):
            said = measured(*argv, *store, code=2).stderr
            assert "no study or campaign 'lop-vm'" in said
            assert "did you mean 'loop-vm'?" in said
    said = measured("replicate", "loop-vm", code=7).stderr
    assert "no campaign of study 'loop-vm'" in said
    assert "fslab run loop-vm" in said


def test_a_mistake_in_a_claim_has_its_line(fslab: Fslab, tmp_path: Path) -> None:
    wrong = STUDY.replace("256k] > each", "256k] >> each").replace("4k] > each[bs=", "4k] > each[bss=")
    (tmp_path / "wrong.yaml").write_text(wrong)
    said = fslab("plan", "wrong.yaml", code=2).stderr
    assert "wrong.yaml:7: claims.1.that: column 16 of" in said
    assert "wrong.yaml:8: claims.2.that: column 20: no key 'bss' — did you mean 'bs'?" in said


def test_what_only_claims_need_that_cannot_be_tested_is_not_measured(fslab: Fslab, tmp_path: Path) -> None:
    """No machine has 300 CPUs."""
    varied = STUDY.replace("size: 16m, ", "size: 1m, numjobs: [1, 300], ").replace("1100ms", "50ms")
    varied = varied.replace("bs=256k]", "bs=256k, numjobs=1]", 1).replace("bs=4k]", "bs=4k, numjobs=1]", 1)
    varied = varied.replace("bs=4k] > each[bs=256k]", "bs=4k, numjobs=300] > each[bs=256k, numjobs=300]")
    (tmp_path / "varied.yaml").write_text(varied)
    told = "no trials of 2 of 4 cells: only claims, or parts of claims, that cannot be tested here need them"
    assert told in fslab("plan", "varied.yaml").stdout
    assert told in fslab("run", "varied.yaml", "--max-trials", "4").stderr
    trials = json.loads(fslab("export", "last", "--format", "json").stdout)
    assert {trial["workload"]["parameters"]["numjobs"] for trial in trials} == {1}


def test_plan_and_run_say_that_cells_without_claims_come_last(fslab: Fslab, tmp_path: Path) -> None:
    """And the run counts only those whose trials are planned."""
    study = STUDY.replace("size: 16m", "size: 1m").replace("1100ms", "50ms")
    other = "  idle: {tool: fio, rw: randwrite, size: 1m, direct: false, fsync: 1, runtime: 50ms}\n"
    study = study.replace("claims:\n", f"{other}claims:\n").replace("{says", "{on: 'write*', says")
    (tmp_path / "some.yaml").write_text(study)
    told = "no claim is about 1 of 3 cells: they are measured last, as far as the budget reaches"
    assert told in fslab("plan", "some.yaml").stdout
    ran = fslab("run", "some.yaml", "--budget", "0.000001s").stderr
    assert told in ran
    assert ": 8 trials of 2 cells\n" in ran


@pytest.mark.slow
def test_a_campaign_goes_on_until_its_claims_are_decided(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "larger.yaml").write_text(STUDY)
    ran = fslab("run", "larger.yaml", "--until-decided", "--max-trials", "8")
    assert "of 2 decided" in ran.stderr
    document = json.loads(fslab("claims", "last", "--json").stdout)
    rises, falls = (one["measured"] for one in document["claims"])
    # On a busy machine, eight trials may leave both claims undecided, but not only one of them.
    assert (rises["verdict"], falls["verdict"]) in {
        ("replicated", "reversed"),
        ("open", "open"),
        ("tie", "tie"),
    }
    assert rises["verdict"] != "replicated" or rises["findings"][0]["low"] > 1
    assert rises["margin"] == 0.1
    assert fslab("claims", "larger.yaml").stdout == fslab("claims").stdout
    assert "two different campaigns of one study" in fslab("claims", "--beside", "last", code=2).stderr
    fslab("replicate", "larger.yaml", "--write", "pages")
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {"README.md", "larger.md"}
    assert "| 2 | Larger writes move less |" in (tmp_path / "pages" / "larger.md").read_text()


def test_replicate_runs_what_was_not_run_yet_and_goes_on_when_a_study_fails(
    fslab: Fslab, tmp_path: Path
) -> None:
    (tmp_path / "larger.yaml").write_text(f"{STUDY}budget: 4s\n")
    command = ("replicate", "missing.yaml", "larger.yaml", "--run", "--write", "pages")
    first = fslab(*command, code=6)
    assert "1 of 2 studies failed: missing.yaml: " in first.stderr
    page = (tmp_path / "pages" / "larger.md").read_text()
    assert "](../" not in (tmp_path / "pages" / "README.md").read_text(), (
        "no link to a page that is not there"
    )
    assert "| 2 | Larger writes move less |" in page
    again = fslab(*command, code=6)
    assert "finished already: campaign " in again.stderr
    assert (tmp_path / "pages" / "larger.md").read_text() == page
    # A later campaign with another number of trials does not replace the finished one.
    fslab("run", "larger.yaml", "--trials", "1")
    assert fslab.json("replicate", "larger.yaml", "--write", "json", "--json")[0]["study"] == "larger"
    assert (tmp_path / "json" / "larger.md").exists()
    told = fslab.json("plan", "larger.yaml", "--json")["claims"]
    assert told[0] == "claims: 2 of 2 can be tested"
    assert told[1].startswith("claims: the budget ")
    assert "finished already: campaign " in fslab(*command, code=6).stderr
    assert (tmp_path / "pages" / "larger.md").read_text() == page
