"""Tests of campaigns on virtual disks that are killed, or whose servers are killed: nothing is left, nothing hangs."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.disk_server import BINARY
from tests.e2e.conftest import FSLAB, Fslab, end
from tests.hold import Hold, mark_of
from tests.leaks import settled
from tests.limits import LIMIT_S, RUN_LIMIT_S, ran, wait_for

from fslab.cell import MachineSpec
from fslab.machine.kinds import REGISTRY
from fslab.system import disk_server, process_marks

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not BINARY.exists(), reason="fslab-disk is not installed beside this Python"),
]

STUDY = """\
title: what stays of a virtual disk
media: {{d: {{type: virtual, profile: hdd-7200, size: 1t}}}}
stacks: {{s: {{medium: d, filesystem: ext4}}}}
workloads: {{held: {{tool: command, run: {run}, space: 1m}}}}
trials: 3
cache: warm
"""
BUSY = ["sh", "-c", "while dd if=/dev/urandom of=x bs=64k count=16 oflag=direct 2>/dev/null; do :; done"]


def write(path: Path, run: str) -> Path:
    path.write_text(STUDY.format(run=run))
    return path


def servers(own: Path) -> list[int]:
    marks = filter(None, map(mark_of, (own / "state").rglob("*.jsonl")))
    found = [pid for mark in marks for pid in process_marks.marked_processes(mark)]
    servers = []
    for pid in found:
        with suppress(FileNotFoundError, ProcessLookupError):  # a command of the campaign that has just ended
            if b"fslab-disk" in Path(f"/proc/{pid}/cmdline").read_bytes():
                servers.append(pid)
    return servers


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
        _, said = process.communicate(timeout=RUN_LIMIT_S)
    finally:
        process.kill()
        hold.close()
    assert {trial["status"] for trial in fslab.trials()} == {"failed:crashed", "ok"}, said
    assert not settled(own_directories)


STRIPES = """\
title: five hard disks in a guest
on: uml
guest_memory: 256m
media: {d: {type: virtual, profile: hdd-7200, size: 1t}}
stacks:
  s: {medium: d, filesystem: btrfs, layout: [{type: lvm-stripe, disks: 5}, {type: md-raid0, disks: 5}]}
workloads: {w: {tool: fio, rw: randread, bs: 4k, size: 8m, runtime: 1s, direct: true}}
trials: 1
cache: warm
"""


def run_in_guest(fslab: Fslab, directory: Path, text: str) -> list[dict[str, Any]]:
    """Run a study in User-Mode Linux, and return its trials."""
    if missing := REGISTRY.get("uml").missing(MachineSpec(type="uml")):
        pytest.skip(f"{missing[0].what}: {missing[0].remedy}")
    (directory / "study.yaml").write_text(text)
    fslab("run", directory / "study.yaml")
    return fslab.trials()


@pytest.mark.slow
def test_a_guest_joins_five_hard_disks(fslab: Fslab, tmp_path: Path) -> None:
    trials = run_in_guest(fslab, tmp_path, STRIPES)
    assert {trial["stack"]["layout"] for trial in trials} == {"lvm-stripe", "md-raid0"}
    for trial in trials:
        assert trial["status"] == "ok", trial["error"]
        disks = trial["provenance"]["device"]["virtual_disks"]
        assert len({each["seed"] for each in disks}) == 5
        for each in disks:
            assert each["profile"] == "hdd-7200"
            assert each["statistics"]["operations"]["read"]["requests"] > 0
            assert each["statistics"]["model"]["media_reads"] > 0
            assert each["io_flusher"] is disk_server.may_flush()


LARGE = """\
title: large disks below layouts that write zeros, mirror and encrypt, with the memory that a disk has by default
on: uml
media: {d: {type: virtual, profile: hdd-7200, size: 4t}, e: {type: virtual, profile: hdd-7200, size: 1t}}
stacks:
  md: {medium: d, layout: [md-raid10, md-raid6], filesystem: xfs}
  own: {medium: d, layout: btrfs-raid5, filesystem: btrfs}
  one: {medium: e, layout: luks, filesystem: xfs}
workloads: {w: {tool: fio, rw: write, bs: 1m, size: 48m, end_fsync: true}}
trials: 1
cache: warm
"""


@pytest.mark.slow
def test_large_disks_below_layouts_have_room_for_what_is_made_on_them(fslab: Fslab, tmp_path: Path) -> None:
    trials = run_in_guest(fslab, tmp_path, LARGE)
    assert {trial["stack"]["layout"] for trial in trials} == {"md-raid10", "md-raid6", "btrfs-raid5", "luks"}
    for trial in trials:
        assert trial["status"] in {"ok", "invalid"}, trial["error"]
        disks = trial["provenance"]["device"]["virtual_disks"]
        stored = [each["statistics"]["stored_bytes"] for each in disks]
        assert all(16 << 20 < each < 768 << 20 for each in stored), (trial["stack"]["layout"], stored)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_doctor_says_what_the_server_of_a_disk_lacks(fslab: Fslab) -> None:
    words = "CAP_SYS_RESOURCE is missing"
    without = ["setpriv", "--bounding-set=-sys_resource", str(FSLAB), "doctor", "--json"]
    done = ran(without, check=True)
    assert words in done.stdout
    assert disk_server.may_flush() is (words not in json.dumps(fslab.json("doctor", "--json")["advice"]))


def kill_at(fslab: Fslab, study: Path, own: Path, wait_s: float, *, whole: bool) -> None:
    """Kill the campaign (``whole``) or its server, ``wait_s`` seconds after the server has started. Then clean."""
    process = fslab.start("run", study, "--allow-commands", "--budget", "60")
    try:
        wait_for(lambda: servers(own) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        select.select([], [], [], wait_s)  # the kill must work at any moment
        for pid in [process.pid] if whole else servers(own):
            with suppress(ProcessLookupError):
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
    """A case has only five kills, because other tests wait while it runs."""
    study = write(tmp_path / "busy.yaml", json.dumps(BUSY))
    chosen = random.Random(window)
    for _ in range(5):
        kill_at(fslab, study, own_directories, 4 * chosen.random(), whole=whole)
