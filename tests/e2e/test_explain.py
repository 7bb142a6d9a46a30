"""Tests of ``fslab explain``: from counters, with a traced trial outside the campaign, and with an ablation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Fslab

# Small, but with an effect larger than any noise: data=journal writes each byte twice.
STUDY = """
title: what journalling data costs
media: {memory: {type: ram, size: 256m}}
stacks:
  ext4: {medium: memory, filesystem: ext4, mount_options: [data=ordered, data=journal]}
workloads:
  direct: {tool: fio, rw: randwrite, bs: 4k, direct: true, iodepth: 8, size: 32m, io_size: 8m}
trials: 4
cache: warm
"""
PAIR = ("last", "direct", "data=journal", "data=ordered")


@pytest.fixture
def campaign(fslab: Fslab, tmp_path: Path) -> Fslab:
    (tmp_path / "journal.yaml").write_text(STUDY)
    fslab("run", "--quiet", "journal.yaml")
    return fslab


def said(document: dict[str, Any], mechanism: str) -> list[str]:
    return [each["stack"] for each in document["statements"] if each["mechanism"] == mechanism]


@pytest.mark.root
@pytest.mark.slow
def test_counters_trace_and_ablation(campaign: Fslab) -> None:
    trials = len(campaign.trials())
    document = campaign.json("explain", "--json")
    assert said(document, "data-journalling") == said(document, "direct-not-honoured")
    assert all("journal" in stack for stack in said(document, "direct-not-honoured"))
    assert {each["mechanism"] for each in document["mechanisms"]} >= {
        "data-journalling",
        "direct-not-honoured",
    }
    first = next(each for each in document["statements"] if each["refuted_by"])
    assert first["figures"][0]["evidence"].startswith("probe ")

    campaign("report", "last", "-o", "page.html")
    page = (campaign.cwd / "page.html").read_text()
    assert f"falsified if: {first['refuted_by']}" in page
    assert first["text"] in page

    traced = campaign("explain", "last", "--trace")
    assert traced.stderr.count("traced: direct on") == 2, traced.stderr
    assert len(campaign.trials()) == trials, "a traced trial is no trial of the campaign"

    found = campaign.json(
        "explain", *PAIR, "--ablate", "--only", "data-journalling", "--trials", "2", "--json"
    )
    shares = found["attribution"]["shares"]
    product = shares["data-journalling"]["factor"] * found["attribution"]["rest"]["factor"]
    assert product == pytest.approx(found["attribution"]["ratio"]["factor"])
    assert "remains unexplained" in found["words"][-1]
    assert campaign.json("explain", "--json") == found, "the ablation is the last campaign, and says it again"


@pytest.mark.root
def test_what_cannot_be_asked_and_a_stored_ablation_that_is_shown_again(fslab: Fslab) -> None:
    (fslab.cwd / "journal.yaml").write_text(STUDY.replace("trials: 4", "trials: 1"))
    fslab("run", "--quiet", "journal.yaml")
    assert "did you mean 'direct'" in fslab("explain", "last", "dirct", code=2).stderr
    assert "no stack 'zfs'" in fslab("explain", "last", "direct", "zfs", code=2).stderr
    twice = fslab("explain", "last", "direct", "data=journal", "data=journal", "--ablate", code=2).stderr
    assert "one workload and two stacks" in twice
    wrong = fslab("explain", *PAIR, "--ablate", "--only", "magic", code=2)
    assert "no mechanism 'magic'" in wrong.stderr

    made = fslab("explain", *PAIR, "--ablate", "--only", "data-journalling", "--trials", "1").stdout
    assert "too few blocks for an interval" in made
    assert fslab("explain").stdout == made, "of the last campaign, which is the ablation"
    assert fslab.json("explain", "--json")["attribution"]["ratio"]["n"] == 1
    again = fslab("explain", *PAIR, "--ablate", code=2).stderr
    assert "is an ablation already" in again
    assert (
        f"name the campaign that it explains: {fslab.json('results', '--list', '--json')[0]['campaign']}"
        in again
    )


def test_of_a_directory_there_is_less_and_nothing_wrong(measured: Fslab) -> None:
    document = measured.json("explain", "--json")
    assert not {each["mechanism"] for each in document["statements"]} & {
        "metadata-traffic",
        "direct-not-honoured",
    }
