"""Tests of trials on virtual disks: properties of the disks, contents of the record, and failures.

No test depends on the speed of the machine.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests import loops
from tests.disk_server import BINARY
from tests.limits import wait_for

from fslab.analysis import disk_request_map
from fslab.campaign.trial import run_trial
from fslab.cell import Cache, Cell, Fresh, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.errors import ToolFailedError
from fslab.storage import Workspace
from fslab.storage.media import _disk
from fslab.system import disk_server, loop_devices
from fslab.trial_record import Status, TrialRecord

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="fslab-disk is not installed beside this Python")

READS: dict[str, Any] = {"rw": "randread", "bs": "4k", "direct": True, "size": "8m", "io_size": "256k"}
WRITES: dict[str, Any] = {"rw": "randwrite", "bs": "4k", "direct": True, "size": "8m", "io_size": "1m"}


def run(
    workspace: Workspace,
    parameters: dict[str, Any],
    filesystem: str = "ext4",
    layout: dict[str, Any] | None = None,
    fresh: Fresh = Fresh.TRIAL,
    **options: Any,
) -> TrialRecord:
    medium = MediumSpec(name="m", type="virtual", options={"memory": "64m", "size": "1g", **options})
    stack = StackSpec(name=filesystem, medium=medium, filesystem=filesystem, **(layout or {}))
    workload = WorkloadSpec(name="w", tool="fio", parameters=parameters)
    # Warm: does not drop the caches of other tests.
    cell = Cell(stack=stack, workload=workload, cache=Cache.WARM, fresh=fresh)
    return run_trial(
        cell, TrialKey(campaign=workspace.campaign, block=0, seed=7), workspace, machine={"kernel": "here"}
    )


def figure(record: TrialRecord, name: str) -> float:
    value = record.probes[name].value
    assert value is not None, name
    return value


def kinds(record: TrialRecord) -> set[str]:
    return {warning.kind for warning in record.validity}


def test_a_hard_disk_of_a_tebibyte(workspace: Workspace) -> None:
    record = run(workspace, READS, profile="hdd-7200", size="1t")
    assert record.status is not Status.FAILED, record.error
    assert record.provenance.device["rotational"] is True
    # Of a kernel with writeback throttling, that of a hard disk (block/blk-wbt.c, wbt_default_latency_nsec).
    assert record.provenance.device["wbt_lat_usec"] in {None, 0, 75_000}
    assert record.provenance.device["size_bytes"] == 1 << 40
    (about,) = record.provenance.device["virtual_disks"]
    assert (about["profile"], about["seed"], about["cache"]) == ("hdd-7200", 1, "volatile")
    assert about["figures"]["rpm"] == 7200
    assert about["fidelity"]["measured_through"].startswith("/dev/loop")
    # How many reads need the head depends on the load: while nobody asks, the drive reads ahead.
    assert figure(record, "disk_movements") + figure(record, "disk_cache_hits") >= 64
    assert figure(record, "disk_requests") >= 64
    assert figure(record, "disk_service_mean") > 100_000, (
        "no request takes less than the drive's command time"
    )
    assert "device_write_amplification" not in record.probes
    assert about["statistics"]["stored_bytes"] < 64 << 20


def test_an_array_is_one_device_with_a_head_for_each_of_its_disks(workspace: Workspace) -> None:
    record = run(workspace, READS, profile="hdd-7200", array_disks=5, array_chunk="64k", cache="none")
    assert record.status is not Status.FAILED, record.error
    assert record.provenance.device["size_bytes"] == 5 << 30
    (about,) = record.provenance.device["virtual_disks"]
    assert (about["array_disks"], about["array_chunk"], about["cache"]) == (5, "64k", "none")
    members = about["statistics"]["model"]["members"]
    assert [each["kind"] for each in members] == ["hdd"] * 5
    assert all(each["media_writes"] > 0 for each in members), "8 MiB in chunks of 64 KiB lie on all disks"
    assert figure(record, "disk_movements") + figure(record, "disk_cache_hits") >= 64, "of all disks"


def test_stripes_that_the_server_makes_follow_each_other_on_one_medium(workspace: Workspace) -> None:
    """mkfs gets the stripe that md and LVM report, and the kernel reads two stripes ahead, as it does from them."""
    seen = []
    for layout, disks, chunk in (("md-raid0", 2, "64k"), ("lvm-stripe", 5, "256k"), ("single", 1, "")):
        options = {"disks": disks, "chunk": chunk} if chunk else {}
        stack = {"layout": layout, "layout_options": options, "served": bool(chunk)}
        record = run(workspace, READS, "xfs", stack, profile="hdd-7200", cache="none", memory="128m")
        assert record.status is not Status.FAILED, record.error
        device = record.provenance.device
        (about,) = device["virtual_disks"]
        ahead = device["read_ahead_kib"] if chunk else None  # of one disk: the kernel's
        made = device.get("layout"), about["array_disks"], device["size_bytes"] >> 30
        seen.append((*made, ahead, device["stripes_in_use"]))
        assert "mdadm" not in str(record.provenance.commands)
    assert seen == [
        ("md-raid0", 2, 2, 256, {"sunit": "128", "swidth": "256"}),
        ("lvm-stripe", 5, 5, 2560, {"sunit": "512", "swidth": "2560"}),
        (None, 1, 1, None, None),
    ]
    assert sum(name.startswith("disk ") for name in workspace.media) == 2


def test_five_of_them_are_five_drives(workspace: Workspace) -> None:
    layout = {"layout": "btrfs-raid0", "layout_options": {"disks": 5}}
    record = run(workspace, READS, "btrfs", layout, profile="hdd-7200", slow=2)
    assert record.status is not Status.FAILED, record.error
    disks = record.provenance.device["virtual_disks"]
    assert [each["seed"] for each in disks] == [1, 2, 3, 4, 5]
    assert [each["slow"] for each in disks] == [2, 1, 1, 1, 1]


def test_an_ssd_tells_of_its_own_writes(workspace: Workspace) -> None:
    record = run(workspace, WRITES, profile="ssd-sata", steady=True, size="256m", memory="256m")
    assert record.status is not Status.FAILED, record.error
    assert figure(record, "device_write_amplification") >= 1
    assert figure(record, "flash_written_bytes") >= 1 << 20
    assert figure(record, "ssd_years_at_this_rate") > 0
    (mkfs,) = (command.argv for command in record.provenance.commands if command.stage == "mkfs")
    assert "nodiscard" in " ".join(mkfs), "otherwise the disk would be as new"


def test_each_trial_has_a_new_disk(workspace: Workspace) -> None:
    first, second = (run(workspace, WRITES, profile="none") for _ in range(2))
    assert first.status is not Status.FAILED, first.error
    stored = [
        each.provenance.device["virtual_disks"][0]["statistics"]["stored_bytes"] for each in (first, second)
    ]
    assert stored[1] < stored[0] * 1.5


def test_a_log_of_requests_is_a_map_in_the_record(workspace: Workspace) -> None:
    """The log covers the run only. ext4's journal lies on the disk itself, so that writes to it are told apart."""
    synced = {**WRITES, "direct": False, "fsync": 1, "io_size": "256k"}
    record = run(workspace, synced, profile="none", log="requests")
    assert record.status is not Status.FAILED, record.error
    (requests,) = disk_request_map.read(record.raw[disk_request_map.NAME])
    kinds_of_bytes = Counter[str]()
    for kind, _, _, size in requests.cells:
        kinds_of_bytes[kind] += size
    assert kinds_of_bytes["write"] >= 256 << 10
    assert kinds_of_bytes["journal"] >= 2 * 4096, "a commit has a descriptor and a commit block"
    assert figure(record, "disk_journal_bytes") == kinds_of_bytes["journal"]
    assert figure(record, "disk_sequential") < 100
    assert sum(sum(each.values()) for each in requests.distances.values()) >= 63
    plain = run(workspace, WRITES, profile="none")
    assert disk_request_map.NAME not in plain.raw


def test_a_run_with_more_requests_than_its_log_has_room_for_fails(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_disk, "REQUEST_LOG_BYTES", 4096)
    record = run(workspace, WRITES, profile="none", log="requests")
    assert record.status_text == "failed:no_space"
    assert "at most 4 KiB" in str(record.error)


def test_faults_begin_with_the_run(workspace: Workspace) -> None:
    record = run(workspace, READS, profile="none", faults="error op=read")
    assert record.status is Status.FAILED
    assert any(command.stage == "run" for command in record.provenance.commands), "not while it was filled"
    assert record.provenance.device["virtual_disks"][0]["faults"] == [{"effect": "error", "op": "read"}]
    assert run(workspace, READS, profile="none").status is not Status.FAILED, "they end with the trial"


def test_more_than_its_memory_is_a_failure(workspace: Workspace) -> None:
    record = run(workspace, {**WRITES, "size": "48m", "io_size": "48m"}, "ext2", profile="none", memory="16m")
    assert record.status_text == "failed:no_space", record.error
    assert "the virtual disk's memory is full" in (record.error or "")


def test_another_speed_is_a_warning(workspace: Workspace) -> None:
    record = run(workspace, READS, profile="hdd-7200", speed=50)
    assert "disk_speed" in kinds(record)
    assert "disk_speed" not in kinds(run(workspace, READS, profile="none"))


def test_a_late_disk_is_a_warning(workspace: Workspace) -> None:
    record = run(workspace, READS, profile="ssd-nvme", speed=1000)
    assert "disk_too_fast" in kinds(record)


@pytest.mark.alone
def test_a_server_that_was_killed_costs_one_trial(workspace: Workspace) -> None:
    """If the server was killed between two trials, the next trial starts a new one."""
    assert run(workspace, READS, profile="none").status is not Status.FAILED
    server: disk_server.Server = workspace.media["disk m"]
    server.child.end()
    assert not server.runs
    record = run(workspace, READS, profile="none")
    assert record.status is not Status.FAILED, record.error
    assert workspace.media["disk m"].runs


@pytest.mark.alone
def test_with_a_server_that_was_killed_a_lasting_file_system_is_made_again(workspace: Workspace) -> None:
    records = [run(workspace, READS, profile="none", fresh=Fresh.CELL)]
    (server,) = (found for name, found in workspace.media.items() if name.startswith(_disk.key("")))
    server.child.end()
    records += [run(workspace, READS, profile="none", fresh=Fresh.CELL) for _ in range(2)]
    assert all(record.status is not Status.FAILED for record in records), [each.error for each in records]
    made = ["mkfs" in {command.stage for command in each.provenance.commands} for each in records]
    assert made == [True, True, False]
    assert ["filesystem_remade" in kinds(each) for each in records] == [False, True, False]


@pytest.mark.alone
def test_a_killed_server_that_measures_a_disk_without_answers_ends(workspace: Workspace) -> None:
    """A process of its own waits for the disk. Who asked for the measurement gets an error.

    In practice the server measures its own disk, whose serving thread is gone. Here it measures the disk of another
    server, which is stopped.
    """
    options = ["--size", str(1 << 20), "--timed"]
    other, ours = (
        disk_server.start(workspace.runtime / name, options, mark=workspace.campaign) for name in ("b", "a")
    )
    with ExitStack() as undo:
        undo.callback(other.end)
        undo.callback(loop_devices.detach, other.file)
        undo.callback(ours.end)
        undo.callback(os.kill, other.child.pid, signal.SIGCONT)
        device = loops.attached(other.file, direct=True)
        os.kill(other.child.pid, signal.SIGSTOP)
        asker = Thread(target=asks, args=(ours, device))
        asker.start()
        while not any("D" in states(child) for child in children(ours.child.pid)):
            assert asker.is_alive()
            time.sleep(0.01)
        os.kill(ours.child.pid, signal.SIGKILL)
        asker.join(30)
        assert not asker.is_alive(), "it waits for an answer that cannot come"
        wait_for(lambda: ours.child.exit_code() is not None)
        with pytest.raises(ToolFailedError):
            ours.ask("statistics")


def asks(server: disk_server.Server, path: Path) -> None:
    with suppress(ToolFailedError):
        server.ask("calibrate", path=str(path))


def states(pid: int) -> list[str]:
    """Return the states of a process's threads, such as D (proc_pid_stat(5))."""
    return [
        path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")
    ]


def children(pid: int) -> list[int]:
    """Return the children of a process's threads."""
    return [
        int(word)
        for path in Path(f"/proc/{pid}/task").glob("*/children")
        for word in path.read_text().split()
    ]
