"""Tests of the probes of ext4, jbd2, XFS, btrfs, extents and loop devices, on files in the format of Linux 6.18.

The expected sums and differences were computed by hand.
"""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.probed import WORK, values

from fslab.probes import REGISTRY, SnapshotMoment, Target
from fslab.probes.extents import _extents, _pieces
from fslab.system import namespaces

JBD2 = """{commits} transactions ({commits} requested), each up to 1365 blocks
average:{blank}
  0ms waiting for transaction
  0ms request delay
  4ms logging transaction
  {us}us average transaction commit time
  4 handles per transaction
  6 blocks per transaction
  {logged} logged blocks per transaction
"""


def target(root: Path, *devices: str) -> Target:
    return Target(
        devices=devices,
        filesystem=None,
        directory=root,
        volume=devices[0],
        sys=root / "sys",
        proc=root / "proc",
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_journal_s_averages_become_sums(tmp_path: Path) -> None:
    probe, info = REGISTRY.get("jbd2"), tmp_path / "proc/fs/jbd2/loop7-8/info"
    write(info, JBD2.format(commits=2, us=1000, logged=8, blank=" "))
    before = probe.snapshot(target(tmp_path, "loop7"))
    write(info, JBD2.format(commits=10, us=3000, logged=4, blank=" "))
    after = probe.snapshot(target(tmp_path, "loop7"))
    found = values(probe.derive({SnapshotMoment.BEFORE: before, SnapshotMoment.SYNCED: after}, WORK))
    block = after["block_bytes"]
    assert found["journal_commits"] == 8
    assert found["journal_bytes"] == (10 * 4 - 2 * 8) * block
    assert found["journal_bytes_error"] == 10 * block, "each average is less than one block too small"
    assert found["journal_commit_mean"] == 3000 * 1000, "the kernel's moving average"


@pytest.mark.parametrize(
    ("mapped", "last", "complete"), [(1, True, True), (2, False, True), (512, False, False)]
)
def test_a_count_that_is_complete_is_known_however_long_it_took(
    mapped: int, last: bool, complete: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that waits for a CPU takes long for a single extent."""

    def mapping(_descriptor: int, _command: int, request: bytearray) -> None:
        struct.pack_into("=I", request, 20, mapped)
        for number in range(mapped):
            flag = int(last and number == mapped - 1)
            struct.pack_into(
                "=QQQQQIIII",
                request,
                32 + 56 * number,
                4096 * number,
                8192 * number,
                4096,
                0,
                0,
                flag,
                0,
                0,
                0,
            )

    monkeypatch.setattr("fcntl.ioctl", mapping)
    (tmp_path / "file").touch()
    found, known = _extents(tmp_path / "file", deadline=0.0)
    assert (len(found), known) == (mapped, complete)


def test_a_journal_on_a_disk_of_its_own_has_the_name_of_that_disk(tmp_path: Path) -> None:
    probe = REGISTRY.get("jbd2")
    write(tmp_path / "proc/fs/jbd2/loop8/info", JBD2.format(commits=2, us=1000, logged=8, blank=" "))
    assert probe.snapshot(target(tmp_path, "loop7", "loop8"))["logged_blocks"] == 8
    assert probe.snapshot(target(tmp_path, "loop7", "loop9")) == {}, "of another file system"


def test_without_a_journal_there_are_no_figures(tmp_path: Path) -> None:
    for name in ("jbd2", "ext4", "xfs", "btrfs"):
        probe = REGISTRY.get(name)
        taken = {moment: probe.snapshot(target(tmp_path, "loop7")) for moment in probe.moments}
        assert probe.derive(taken, WORK).values == {}, name


def test_a_mount_that_began_anew_is_unknown_not_negative(tmp_path: Path) -> None:
    probe, info = REGISTRY.get("jbd2"), tmp_path / "proc/fs/jbd2/loop7-8/info"
    taken = {}
    for moment, commits in ((SnapshotMoment.BEFORE, 9), (SnapshotMoment.SYNCED, 3)):
        write(info, JBD2.format(commits=commits, us=10, logged=1, blank=" "))
        taken[moment] = probe.snapshot(target(tmp_path, "loop7"))
    assert values(probe.derive(taken, WORK))["journal_commits"] is None


def test_ext4_fast_commits_and_delayed_allocation(tmp_path: Path) -> None:
    probe, own = REGISTRY.get("ext4"), tmp_path / "sys/fs/ext4/loop7"
    taken = {}
    for moment, fast, blocks, delayed in ((SnapshotMoment.BEFORE, 5, 7, 0), (SnapshotMoment.END, 25, 47, 3)):
        write(own / "delayed_allocation_blocks", f"{delayed}\n")
        info = f"fc stats:\n{fast} commits\n2 ineligible\n{blocks} numblks\n0us avg_commit_time\n"
        write(tmp_path / "proc/fs/ext4/loop7/fc_info", info)
        taken[moment] = probe.snapshot(target(tmp_path, "loop7"))
    found, block = values(probe.derive(taken, WORK)), taken[SnapshotMoment.END]["block_bytes"]
    assert found == {
        "delayed_allocation_bytes": 3 * block,
        "fast_commits": 20,
        "fast_commits_ineligible": 0,
        "fast_commit_bytes": 40 * block,
    }


def test_xfs_log_blocks_are_of_512_bytes(tmp_path: Path) -> None:
    probe, file = REGISTRY.get("xfs"), tmp_path / "sys/fs/xfs/loop7/stats/stats"
    text = "extent_alloc {0} 112 1 12\ntrans 0 6 0\nlog {1} {2} 0 1 1\npush_ail 6 0\nbmbt2 0 0 0\nxpc 458752 {3} 0\n"
    taken = {}
    for moment, numbers in (
        (SnapshotMoment.BEFORE, (1, 1, 6, 4096)),
        (SnapshotMoment.SYNCED, (4, 3, 26, 12288)),
    ):
        write(file, text.format(*numbers))
        taken[moment] = probe.snapshot(target(tmp_path, "loop7"))
    found = values(probe.derive(taken, WORK))
    assert (found["xfs_log_writes"], found["xfs_log_bytes"]) == (2, 20 * 512)
    assert (found["xfs_allocated_extents"], found["xfs_written_bytes"]) == (3, 8192)
    assert found["xfs_log_no_buffer"] == 0
    assert found["xfs_freed_extents"] == 0


def test_btrfs_is_found_by_any_of_its_devices(tmp_path: Path) -> None:
    probe, own = REGISTRY.get("btrfs"), tmp_path / "sys/fs/btrfs/1234"
    for name in ("loop6", "loop7"):
        write(own / "devices" / name, "")
    space = {"bytes_used": 100, "disk_used": 200, "total_bytes": 1000, "bytes_may_use": 1500}
    for name, number in space.items():
        write(own / "allocation/metadata" / name, f"{number}\n")
    taken = {}
    for moment, commits in ((SnapshotMoment.BEFORE, 1), (SnapshotMoment.END, 4), (SnapshotMoment.SYNCED, 5)):
        lines = f"commits {commits}\ncur_commit_ms 0\ntotal_commit_ms {commits * 10}\n"
        write(own / "commit_stats", lines)
        write(own / "checksum", "crc32c (crc32c-generic)\n")
        taken[moment] = probe.snapshot(target(tmp_path, "loop7"))
    assert probe.derive(taken, WORK).texts == {"checksum": ("crc32c (crc32c-generic)",)}
    found = values(probe.derive(taken, WORK))
    assert (found["btrfs_commits"], found["btrfs_commits_synced"]) == (3, 4)
    assert found["btrfs_commit_time"] == 0.03
    assert found["btrfs_metadata_copies"] == 2.0
    assert (found["btrfs_metadata_reserved"], found["btrfs_metadata_total"]) == (1500, 1000)
    (own / "allocation/metadata").rename(own / "allocation/mixed")  # mkfs.btrfs --mixed
    mixed = values(probe.derive(dict.fromkeys(taken, probe.snapshot(target(tmp_path, "loop7"))), WORK))
    assert set(mixed) == {"btrfs_commits", "btrfs_commits_synced", "btrfs_commit_time"}


def test_what_was_written_back_by_the_end_and_by_the_flush() -> None:
    probe = REGISTRY.get("writeback")
    taken = {
        moment: {"BdiDirtied": 100 + dirtied, "BdiWritten": 50 + written}
        for moment, dirtied, written in zip(probe.moments, (0, 64, 64), (0, 16, 60), strict=True)
    }
    found = values(probe.derive(taken, WORK))
    assert found["volume_dirtied_bytes"] == 64 * 1024
    assert found["volume_written_back_bytes"] == 16 * 1024
    assert found["volume_written_back_bytes_flushed"] == 60 * 1024
    assert values(probe.derive({**taken, probe.moments[-1]: {}}, WORK)) == {}


def test_writeback_counters_of_btrfs_on_a_joined_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On LVM and md, btrfs lists the joined device only."""
    own = tmp_path / "sys/fs/btrfs/1234"
    write(own / "devices/dm-0", "")
    (own / "bdi").symlink_to("../../../devices/virtual/bdi/btrfs-7")
    write(tmp_path / "debug/bdi/btrfs-7/stats", "BdiDirtied:    16 kB\nBdiWritten:    8 kB\n")
    monkeypatch.setattr(namespaces, "debugfs", lambda: tmp_path / "debug")
    on = replace(target(tmp_path, "loop6", "loop7"), volume="dm-0")
    assert REGISTRY.get("writeback").snapshot(on) == {"BdiDirtied": 16, "BdiWritten": 8}
    assert REGISTRY.get("writeback").snapshot(target(tmp_path, "loop6")) == {}, "another file system"
    write(tmp_path / "proc/self/cgroup", "0::/user.slice/session-1.scope\n")
    assert REGISTRY.get("writeback").snapshot(on) == {}, "before Linux 6.10: of the root cgroup only"
    write(tmp_path / "proc/self/cgroup", "4:memory:/user.slice\n0::/user.slice\n")
    assert REGISTRY.get("writeback").snapshot(on) != {}, "memory in version 1: the root has all"
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    assert REGISTRY.get("writeback").snapshot(on) != {}
    (tmp_path / "proc/self/ns").mkdir()
    (tmp_path / "proc/self/ns/cgroup").symlink_to("cgroup:[4026532000]")
    assert REGISTRY.get("writeback").snapshot(on) == {}, "in a container"
    write(tmp_path / "debug/bdi/btrfs-7/wb_stats", "")
    assert REGISTRY.get("writeback").snapshot(on) == {"BdiDirtied": 16, "BdiWritten": 8}


def test_a_hole_breaks_no_piece_but_another_place_does() -> None:
    # (offset, address, length). Before the second extent, file and device have a gap of the same length, so it belongs
    # to the same piece. The third is at another place.
    assert _pieces([(0, 1000, 100), (200, 1200, 50), (250, 9000, 10)]) == 2
    assert _pieces([(0, 5, 1)]) == 1
    assert _pieces([]) == 0


def test_loop_devices_that_do_not_bypass_the_cache(tmp_path: Path) -> None:
    probe = REGISTRY.get("loop-device")
    for name, direct in (("loop1", "1"), ("loop2", "0")):
        write(tmp_path / "sys/class/block" / name / "loop/dio", direct)
    one = probe.derive({SnapshotMoment.END: probe.snapshot(target(tmp_path, "loop1"))}, WORK)
    both = probe.derive({SnapshotMoment.END: probe.snapshot(target(tmp_path, "loop1", "loop2"))}, WORK)
    assert values(one) == {"loop_direct": 1}
    assert values(both) == {"loop_direct": 0}
    assert probe.derive({SnapshotMoment.END: probe.snapshot(target(tmp_path, "sda"))}, WORK).values == {}


def test_a_link_or_a_pipe_that_takes_the_place_of_a_file_is_not_followed_or_waited_for(
    tmp_path: Path,
) -> None:
    """By a process that a command of another user has left running, between the look and the opening."""
    (tmp_path / "file").write_bytes(b"of somebody else")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="symbolic links"):
        _extents(tmp_path / "link", None)
    with pytest.raises(OSError, match=r"not supported|Inappropriate ioctl"):
        _extents(tmp_path / "pipe", None)
