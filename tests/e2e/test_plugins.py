"""Tests of a plug-in package that is built and installed as a user does it, and used in a real campaign."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab
from tests.limits import ran

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests/plugin"
FROM = "fslab-sample 0.1.0"
STUDY = """
title: a plug-in
media: {memory: {type: ram, size: 64m}}
stacks: {fs: {medium: memory, filesystem: [ext4, ext4-nojournal], mount_options: nodelalloc}}
workloads:
  files: {tool: write-files, files: 8}
  dd: {tool: dd, op: write, bs: 1m, count: 1}
trials: 1
"""
PLAIN = """
title: without the plug-in
media: {memory: {type: ram, size: 64m}}
stacks: {fs: {medium: memory, filesystem: ext4}}
workloads: {dd: {tool: dd, op: write, bs: 1m, count: 1}}
trials: 1
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the sample plug-in for this test's processes only, and return the directory that contains it."""
    uv = ROOT / ".tools/bin/uv"
    found = str(uv) if uv.exists() else shutil.which("uv")
    assert found, "uv is missing: make setup"
    site = tmp_path / "site"
    offline = ["--offline", "--no-index", "--no-deps", "--no-config", "--cache-dir", str(tmp_path / "cache")]
    argv = [found, "pip", "install", *offline, "--python", sys.executable, "--target", str(site), str(SAMPLE)]
    done = ran(argv)
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("PYTHONPATH", str(site))
    return site


@pytest.mark.root
def test_a_campaign_uses_it_and_says_so(fslab: Fslab, installed: Path) -> None:
    study = fslab.cwd / "plugin.yaml"
    study.write_text(STUDY)
    fslab("run", study, "--quiet")
    trials = fslab.trials()
    assert {trial["status"] for trial in trials} <= {"ok", "invalid"}
    assert len(trials) == 4
    for trial in trials:
        cell = trial["spec"]
        own = {"fslab-sample": "0.1.0"}
        assert trial["provenance"]["plugins"] == own, "its probe and its rule take part in each trial"
        assert cell["stack"]["plugins"] == (own if cell["stack"]["filesystem"] == "ext4-nojournal" else {})
        assert cell["workload"]["plugins"] == (own if cell["workload"]["tool"] == "write-files" else {})
        assert trial["probes"]["open_files"]["value"] > 1
        assert "many_open_files" in {warning["kind"] for warning in trial["validity"]}
        if cell["workload"]["tool"] == "write-files":
            assert trial["metrics"]["write_files_rate"]["value"] > 0
    made = [
        command["argv"]
        for trial in trials
        for command in trial["provenance"]["commands"]
        if command["stage"] == "mkfs" and trial["spec"]["stack"]["filesystem"] == "ext4-nojournal"
    ]
    assert made
    assert all("^has_journal" in argv for argv in made)
    assert "Nothing is written to a journal" in fslab("explain", "--all").stdout

    # Without the plug-in, the results can still be read. To resume the campaign, the same version is needed.
    with pytest.MonkeyPatch.context() as without:
        without.setenv("FSLAB_PLUGINS", "off")
        assert "ext4-nojournal" in fslab("results", "--all").stdout
        refused = fslab("run", "--resume", "last", "--trials", 2, "--quiet", code=4).stderr
        assert f"planned with plug-in {FROM}, but no plug-in is installed" in refused
        assert "no workload 'write-files'" in fslab("plan", study, code=2).stderr
    info = next(installed.glob("*.dist-info"))
    (info / "METADATA").write_text((info / "METADATA").read_text().replace("0.1.0", "0.2.0"))
    refused = fslab("run", "--resume", "last", "--trials", 3, "--quiet", code=4).stderr
    assert f"planned with plug-in {FROM}, but plug-in fslab-sample 0.2.0 is installed" in refused


def test_lists_say_where_entries_come_from(fslab: Fslab, installed: Path) -> None:
    listed = fslab.json("list", "--json")
    origins = {entry["name"]: entry["from"] for entry in listed["filesystems"]}
    assert origins["ext4-nojournal"] == FROM
    assert {origin for name, origin in origins.items() if name != "ext4-nojournal"} == {"fslab"}
    assert f"[{FROM}]" in fslab("list", "workloads").stdout
    assert "ext4-nojournal" in fslab("list", "filesystems").stdout


def test_a_broken_one_breaks_neither_help_nor_lists(fslab: Fslab, installed: Path) -> None:
    (installed / "fslab_sample/open_files.py").write_text("raise RuntimeError('broken here')\n")
    assert "Usage" in fslab("--help").stdout
    done = fslab("list", "probes")
    assert "block-device" in done.stdout
    assert "open-files" not in done.stdout
    assert (
        f"{FROM}: plug-in 'open-files' (fslab.probes) cannot be loaded: RuntimeError: broken here"
        in done.stderr
    )
    assert "FSLAB_PLUGINS=off" in done.stderr
    study = fslab.cwd / "plain.yaml"
    study.write_text(PLAIN)
    if os.geteuid() == 0:
        assert "broken here" in fslab("run", study, "--quiet", code=4).stderr, "no trial without its probe"
