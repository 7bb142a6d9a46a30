"""Tests of invalid trials in a campaign: they are stored, not compared, and reported in the results."""

from __future__ import annotations

import re
from pathlib import Path

from tests.e2e.conftest import Fslab

STUDY = """
title: one workload that is too short, one that is not
media: {here: {type: directory, path: %s}}
stacks: {here: {medium: here}}
workloads:
  short: {tool: fio, rw: randread, bs: 64k, direct: true, size: 8m, runtime: 200ms}
  long: {tool: fio, rw: randread, bs: 64k, direct: true, size: 8m, runtime: 1s}
trials: 2
cache: warm
"""


def test_invalid_trials_are_kept_and_left_out_in_plain_sight(fslab: Fslab, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    study = tmp_path / "short.yaml"
    study.write_text(STUDY % place)
    shown = fslab("run", study).stdout
    assert re.search(
        r"trials are invalid \(short on [^)]+\): the measurement was too short", " ".join(shown.split())
    )
    # Only the trials that the study asks for. On a busy machine, others replace invalid ones.
    planned = [trial for trial in fslab.trials() if trial["block"] < 2]
    trials = {(trial["workload"]["name"], trial["block"]): trial for trial in planned}
    assert len(trials) == 4
    for (workload, _), trial in trials.items():
        severities = {warning["severity"] for warning in trial["validity"] if warning["kind"] == "too_short"}
        assert severities == ({"invalid"} if workload == "short" else {"note"})
        assert trial["metrics"]["read_iops"]["value"] > 0, "its figures are kept"
        assert workload != "short" or trial["status"] == "invalid"
    report = fslab.json("results", "--json")
    assert report["counts"]["invalid"] >= 2
    short = next(row for row in report["rows"] if row["workload"].startswith("short"))
    (summary,) = short["summaries"]
    assert (summary["values"], summary["median"], summary["n_invalid"]) == ([], None, 2)
    noted = {(note["kind"], note["severity"]) for note in report["notes"]}
    assert {("too_short", "invalid"), ("too_short", "note")} <= noted
