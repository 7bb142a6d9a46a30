"""Tests of a tool whose output is a link, a FIFO, endless or invalid: its trial fails, and nothing else is affected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab

SECRET = "what the tool was never given"
# The requested size selects the behaviour. $report is the file for fio's JSON document.
FIO = """#!/bin/bash
for word; do
  case $word in
    --version) echo fio-3.33; exit;;
    --merge-blktrace-only) exit;;  # it refuses nothing
    --output=*) report=${word#--output=};;
    --size=*) size=${word#--size=};;
  esac
done
case $size in
  1m) ln -s SECRET "$report";;
  2m) mkfifo "$report";;
  3m) printf '%200000s' '' | tr ' ' '[' > "$report";;
  4m) exec cat /dev/zero;;
  5m) echo '{"jobs": [{"error": Infinity}]}' > "$report";;
  6m) truncate -s 2G "$report";;
  7m) scratch=$(dirname "$report"); mv "$scratch" "$scratch.away"; ln -s SECRETS "$scratch";;
  8m) mkdir "$report";;
  9m) echo '{"jobs": [{"error": 0, "read": "none", "write": [7]}]}' > "$report";;
  10m) echo '{"jobs": 5}' > "$report"; head -c 65M /dev/zero >&2;;
esac
"""
SAID = {
    "1m": "symbolic link",
    "2m": "cannot be read",
    "3m": "no JSON document",
    "4m": "printed more than 64 MiB",
    "5m": "not as documented",
    "6m": "larger than 64 MiB",
    "7m": "no JSON document",
    "8m": "cannot be read",
    "9m": "not as documented",
    "10m": "printed more than 64 MiB",
}


def test_a_hostile_tool(fslab: Fslab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, secrets = tmp_path / "bin", tmp_path / "secrets"
    programs.mkdir()
    secrets.mkdir()
    for name in ("secret", "fio.json"):
        (secrets / name).write_text(SECRET)
    fio = programs / "fio"
    fio.write_text(FIO.replace("SECRETS", str(secrets)).replace("SECRET", str(secrets / "secret")))
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin:/usr/sbin:/sbin")
    (tmp_path / "work").mkdir()
    workloads = {f"w{size}": {"tool": "fio", "rw": "write", "size": size} for size in SAID}
    study = {
        "title": "t", "trials": 1, "cache": "warm", "time_limit": "5m",
        "media": {"here": {"type": "directory", "path": str(tmp_path / "work")}},
        "stacks": {"s": {"medium": "here"}}, "workloads": workloads,
    }  # fmt: skip
    (tmp_path / "study.yaml").write_text(json.dumps(study))
    fslab("run", "study.yaml", "--quiet", code=6)
    trials = fslab.trials()
    assert {trial["workload"]["parameters"]["size"]: trial["status"] for trial in trials} == dict.fromkeys(
        SAID, "failed:output"
    )
    for trial in trials:
        assert SAID[trial["workload"]["parameters"]["size"]] in trial["error"]
    assert SECRET not in json.dumps(trials)
    assert (secrets / "secret").read_text() == SECRET
    assert [*(tmp_path / "work").iterdir()] == []
