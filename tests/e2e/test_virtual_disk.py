"""Campaigns on virtual disks that are killed, or whose servers are: nothing stays, and nothing hangs."""

from __future__ import annotations

import json
import os
import random
import select
import signal
from pathlib import Path

import pytest
from tests.disk_server import BINARY
from tests.e2e.conftest import Fslab, end
from tests.hold import Hold
from tests.leaks import settled
from tests.limits import LIMIT_S, wait_for

from fslab.system import proc

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not BINARY.exists(), reason="fslab-disk is not installed beside this Python"),
]

STUDY = """\
title: what stays of a virtual disk
media: {{d: {{type: virtual, profile: hdd-7200, size: 1t}}}}
stacks: {{s: {{medium: d, filesystem: ext4}}}}
workloads: {{held: {{tool: command, run: {run}}}}}
trials: 3
cache: warm
"""
BUSY = ["sh", "-c", "while dd if=/dev/urandom of=x bs=64k count=16 oflag=direct 2>/dev/null; do :; done"]


def write(path: Path, run: str) -> Path:
    path.write_text(STUDY.format(run=run))
    return path


def servers(own: Path) -> list[int]:
    campaigns = [path.stem for path in (own / "state").rglob("*.jsonl")]
    found = [pid for campaign in campaigns for pid in proc.marked_processes(campaign)]
    return [pid for pid in found if b"fslab-disk" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.alone
def test_a_killed_campaign_leaves_nothing_after_clean(
    fslab: Fslab, tmp_path: Path, own_directories: Path
) -> None:
    hold = Hold(tmp_path)
    process = fslab.start("run", write(tmp_path / "held.yaml", hold.run), "--allow-commands")
    try:
        hold.reached(process)
        assert servers(own_directories)
        end(process, signal.SIGKILL)
    finally:
        process.kill()
        hold.close()
    assert "disk" in fslab("clean").stdout
    assert not settled(own_directories)


@pytest.mark.alone
def test_a_killed_server_fails_a_trial_and_not_the_campaign(
    fslab: Fslab, tmp_path: Path, own_directories: Path
) -> None:
    hold = Hold(tmp_path)
    process = fslab.start("run", write(tmp_path / "held.yaml", hold.run), "--allow-commands")
    try:
        hold.reached(process)
        (server,) = servers(own_directories)
        os.kill(server, signal.SIGKILL)
        hold.release_all()
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
        hold.close()
    assert [trial["status"] for trial in fslab.trials()].count("ok") >= 1, said
    assert not settled(own_directories)


def kill_at(fslab: Fslab, study: Path, own: Path, wait_s: float, *, whole: bool) -> None:
    """Kill the campaign, or its server, so long after the server came; then clean."""
    process = fslab.start("run", study, "--allow-commands", "--budget", "60")
    try:
        wait_for(lambda: servers(own) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        select.select([], [], [], wait_s)  # wherever it is by then: each moment is a case
        for pid in [process.pid] if whole else servers(own):
            os.kill(pid, signal.SIGKILL)
        if not whole:
            select.select([], [], [], 0.3)
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    fslab("clean")
    assert not settled(own)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("whole", [False, True], ids=["server", "campaign"])
@pytest.mark.parametrize("window", range(10))
def test_fifty_kills_leave_nothing(
    fslab: Fslab, tmp_path: Path, own_directories: Path, window: int, *, whole: bool
) -> None:
    """Five in each window, so that other tests wait for minutes only."""
    study = write(tmp_path / "busy.yaml", json.dumps(BUSY))
    chosen = random.Random(window)
    for _ in range(5):
        kill_at(fslab, study, own_directories, 4 * chosen.random(), whole=whole)
