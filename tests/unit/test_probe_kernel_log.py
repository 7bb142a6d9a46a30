"""Tests of the kernel log probe and its rules, on records of /dev/kmsg of Linux 6.18.

The recorded errors were provoked on ext4, XFS, btrfs and a loop device.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.probed import USAGE, WORK

from fslab.probes import ProbeFinding, SnapshotMoment, Target
from fslab.probes.kernel_log import KernelLog
from fslab.storage.filesystems import others_in_log
from fslab.system import kernel_log, sysfs
from fslab.system.proc import SEE_LOG, Completed
from fslab.trial_record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial_warnings import trial_warnings

LOG = (Path(__file__).parents[1] / "golden/linux-6.18/kmsg-errors.txt").read_text()


def number(line: str) -> int:
    return int(line.split(",")[1])


def log(first: int, last: int) -> str:
    return "".join(f"{line}\n" for line in LOG.splitlines() if first <= number(line) <= last)


@pytest.fixture(autouse=True)
def own_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel_log, "KMSG", tmp_path / "kmsg")


def found(
    tmp_path: Path,
    before: str,
    after: str,
    devices: tuple[str, ...] = ("loop0",),
    *,
    below: tuple[str, ...] = (),
    others: tuple[str, ...] = (),
) -> tuple[ValidityWarning, ...]:
    """Return the warnings that the rules give for the lines logged between the snapshots."""
    probe, taken = KernelLog(), {}
    target = Target(
        devices=devices, filesystem="ext4", directory=Path("/mnt/x"), below=below, others_in_log=others
    )
    for moment, text in ((SnapshotMoment.BEFORE, before), (SnapshotMoment.FLUSHED, after)):
        with (tmp_path / "kmsg").open("a") as file:
            file.write(text)
        taken[moment] = probe.snapshot(target)
    finding = probe.derive(taken, WORK)
    return trial_warnings(TrialFacts(work=WorkFacts(), cold=True, texts=finding.texts, devices=devices))


def lines(warning: ValidityWarning) -> list[str]:
    assert warning.kind == "kernel_error"
    return list(warning.data["lines"])


@pytest.mark.parametrize(
    ("first", "last", "count", "start"),
    [
        (1007, 1010, 1, "EXT4-fs error (device loop0): trigger_test_error"),
        (1011, 1017, 2, "XFS (loop0): User initiated shutdown received."),
        (1025, 1050, 20, "BTRFS warning (device loop0): csum failed root 5 ino 257 off 0"),
        (1051, 1055, 3, "I/O error, dev loop0, sector 32768 op 0x0:(READ)"),
    ],
)
def test_errors_during_the_trial_make_it_invalid(
    tmp_path: Path, first: int, last: int, count: int, start: str
) -> None:
    (warning,) = found(tmp_path, log(1000, first - 1), log(first, last))
    assert warning.severity is Severity.INVALID
    assert warning.data["count"] == count
    assert lines(warning)[0].startswith(start)
    assert start in warning.message


def test_errors_before_the_trial_do_not_count(tmp_path: Path) -> None:
    assert found(tmp_path, log(1000, 1055), "") == ()


def test_mounting_and_unmounting_are_no_trouble(tmp_path: Path) -> None:
    assert found(tmp_path, log(1000, 1003), log(1004, 1008)) == ()
    assert found(tmp_path, log(1000, 1017), log(1018, 1029)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "INFO: task fio:1234 blocked for more than 120 seconds.",
        "BUG: kernel NULL pointer dereference, address: 0000000000000010",
        "Oops: 0002 [#1] PREEMPT SMP NOPTI",
        "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
        "Internal error: Oops: 0000000096000004 [#1] SMP",
        "Oops [#1]",
        "Oops - illegal instruction [#1]",
        "Oops: 0004 ilc:2 [#1] SMP",
        "Oops: Kernel access of bad area, sig: 11 [#1]",
        "WARNING: CPU: 1 PID: 77 at fs/btrfs/extent-tree.c:3011 __btrfs_free_extent+0x1/0x2",
        "Aborting journal on device loop0-8.",
        "Out of memory: Killed process 4321 (fio) total-vm:1kB",
    ],
)
def test_errors_that_name_no_file_system(tmp_path: Path, text: str) -> None:
    (warning,) = found(tmp_path, log(1000, 1001), f"4,1100,1,-;{text}\n")
    assert warning.severity is Severity.INVALID
    assert lines(warning) == [text]


@pytest.mark.parametrize(
    ("limited", "score", "counts"),
    [(True, 500, True), (True, 1000, True), (True, 0, False), (False, 500, False)],
)
def test_a_process_that_is_killed_at_the_limit_of_the_tool_s_memory_makes_the_trial_invalid(
    limited: bool, score: int, counts: bool
) -> None:
    """The tool may go on without it, and report figures."""
    text = f"Memory cgroup out of memory: Killed process 77 (x) total-vm:20kB, UID:0 oom_score_adj:{score}"
    facts = TrialFacts(work=WorkFacts(), cold=True, texts={"kernel_log": (text,)}, memory_limited=limited)
    assert [(each.kind, each.severity) for each in trial_warnings(facts)] == [
        ("kernel_error", Severity.INVALID)
    ] * counts


@pytest.mark.parametrize(
    "record",
    [
        "6,1100,1,-;traps: EXT4-fs error[13288] general protection fault ip:55aca4770176 sp:7ffd38d62a10 error:0 in x",
        "6,1100,1,-;BTRFS error[13289]: segfault at 0 ip 000055b277a85170 sp 00007ffce1abf990 error 6 in x",
        "6,1100,1,-;EXT4-fs warning[13290]: segfault at 0 ip 000055b277a85170 sp 00007ffce1abf990 error 6 in x",
        "4,1100,1,-;EXT4-fs error invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "4,1100,1,-;CPU: 0 PID: 9 Comm: EXT4-fs error Not tainted 6.18.44 #1",
        "6,1100,1,-;[     77]     0    77     5010      640   110592        0             0 EXT4-fs error",
        "6,1100,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/x,task_memcg=/x,task=EXT4-fs error,pid=77,uid=1000",
        "3,1100,1,-;Memory cgroup out of memory: Killed process 77 (EXT4-fs error) total-vm:20kB, anon-rss:9kB",
        "6,1100,1,-;oom_reaper: reaped process 77 (EXT4-fs error), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
        "4,1100,1,-;x86/split lock detection: #AC: EXT4-fs error/77 took a split_lock trap at address: 0x401000",
        "4,1100,1,-;Memory cgroup stats for /user.slice/BUG: x:",
        "6,1100,1,-;cgroup: fork rejected by pids controller in /user.slice/BUG: x",
        "3,1100,1,-;overlayfs: failed to resolve '/BUG: x': -2",
        "3,1100,1,-;overlay: Unknown parameter 'I/O error'",
        "4,1100,1,-;process `I/O error' is using obsolete setsockopt SO_BSDCOMPAT",
        "6,1100,1,-;BUG: entered promiscuous mode",
        "6,1100,1,-;WARNING: renamed from BUG",
        "6,1100,1,-;br0: port 1(Oops) entered blocking state",
        "6,1100,1,-;Oops: renamed from [#1]",
        "6,1100,1,-;IPv6: ADDRCONF(NETDEV_CHANGE): BUG: link becomes ready",
        "12,1100,1,-;systemd[1]: backup.service: I/O error",
        "11,1100,1,-;EXT4-fs error (device loop0): written by a program",
    ],
)
def test_what_any_user_can_have_logged_is_no_error_of_the_kernel(tmp_path: Path, record: str) -> None:
    """A program that crashes is named in the message; its name is any text of 15 bytes. In a user namespace, users
    mount overlayfs and name network devices."""
    assert found(tmp_path, log(1000, 1001), f"{record}\n") == ()


@pytest.mark.parametrize("devices", [("loop5",), ("loop00",), ("sda1", "dm-0"), ()])
def test_errors_of_another_device_are_not_this_trial_s(tmp_path: Path, devices: tuple[str, ...]) -> None:
    """A trial on tmpfs has no device."""
    assert found(tmp_path, log(1000, 1008), log(1009, 1055), devices) == ()


def test_errors_of_another_file_system_that_had_the_device_are_not_this_trial_s(tmp_path: Path) -> None:
    text = (
        "3,1100,1,-;BTRFS error (device loop3): bdev /dev/loop3 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0\n"
    )
    own, others = others_in_log("btrfs"), others_in_log("xfs")
    assert found(tmp_path, "", text, ("loop3",), others=others) == ()
    assert len(found(tmp_path, "", text, ("loop3",), others=own)) == 1


@pytest.mark.parametrize(
    "name",
    ["nullb0", "zd16", "bcache0p1", "dasda1", "ublkb0", "loop3p1", "nvme1c0n1", "pmem0s", "pmem0.1", "mtdblock0", "sr0",
     "fd0", "rnbd0", "cciss!c0d0p1", "mmcblk0boot0", "zloop0", "etherd!e1.0", "md_home", "made-next-year0"],
)  # fmt: skip
def test_every_kind_of_device_is_another_device(tmp_path: Path, name: str) -> None:
    for text in (
        f"EXT4-fs error (device {name}): x",
        f"BTRFS error (device {name} state E): x",
        f"XFS ({name}): Corruption detected. Unmount and run xfs_repair",
        f"I/O error, dev {name}, sector 8 op 0x0:(READ)",
        f"Buffer I/O error on dev {name}, logical block 0, async page read",
        f"Aborting journal on device {name}-8.",
        f"JBD2: I/O error when updating journal superblock for {name}-8.",
    ):
        assert found(tmp_path, "", f"3,1100,1,-;{text}\n", ("loop3",)) == ()
        assert len(found(tmp_path, "", f"3,1100,1,-;{text}\n", (name,))) == 1


def test_messages_of_dm_have_the_number_of_the_device(tmp_path: Path) -> None:
    text = "3,1100,1,-;device-mapper: thin: 253:3: metadata operation failed: I/O error\n"
    assert found(tmp_path, "", text, ("loop3",)) == ()
    assert len(found(tmp_path, "", text, ("loop3",), below=("dm-3",))) == 1


@pytest.mark.parametrize(
    "text", ["SQUASHFS error: I/O error", "CIFS: VFS: Send error in read = -5, I/O error"]
)
def test_errors_of_file_systems_that_are_never_tested_are_not_this_trial_s(tmp_path: Path, text: str) -> None:
    """They name no device."""
    assert found(tmp_path, "", f"3,1100,1,-;{text}\n", ("loop3",), others=others_in_log("ext4")) == ()


@pytest.mark.parametrize(
    ("filesystem", "text"),
    [
        (
            "f2fs",
            "F2FS-fs (loop0): inconsistent node block, nid:5, node_footer[nid:0,ino:0,ofs:0,cpver:0,blkaddr:0]",
        ),
        ("f2fs", "F2FS-fs (loop0): Stopped filesystem due to reason: 2"),
        ("vfat", "FAT-fs (loop0): error, fat_get_cluster: invalid cluster chain (i_pos 0)"),
        ("exfat", "exFAT-fs (loop0): error, invalid access to FAT (entry 0x0)"),
        ("nilfs2", "NILFS error (device loop0): nilfs_bmap_last_key: broken bmap (inode number=4)"),
        ("jfs", "ERROR: (device loop0): dbAllocNext: Corrupt dmap page"),
        ("reiserfs", "REISERFS error (device loop0): vs-13070 reiserfs_read_locked_inode: i/o failure"),
        ("udf", "UDF-fs: error (device loop0): udf_read_inode: (ino 1) failed !bh"),
        ("ntfs3", "ntfs3: loop0: Mark volume as dirty due to NTFS errors"),
        ("bcachefs", "bcachefs (loop0): fatal error - emergency read only"),
    ],
)
def test_every_file_system_s_errors_count(tmp_path: Path, filesystem: str, text: str) -> None:
    (warning,) = found(tmp_path, "", f"2,1100,1,-;{text}\n", others=others_in_log(filesystem))
    assert warning.severity is Severity.INVALID


def test_an_error_of_the_disk_under_our_image_is_this_trial_s(tmp_path: Path) -> None:
    text = "3,1100,1,-;I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2\n"
    (warning,) = found(tmp_path, log(1000, 1001), text, below=("sda1", "sda"))
    assert warning.severity is Severity.INVALID
    assert found(tmp_path, log(1000, 1001), text, below=("sdb",)) == ()


def test_a_command_s_reasons_are_the_kernel_s_errors_about_its_devices() -> None:
    records = (
        b"6,1,1,-;loop4: detected capacity change from 0 to 1048576\n"
        b"3,2,1,-;ext4: Unknown parameter 'noacl'\n3,3,1,-;EXT4-fs (loop3): no journal found\n"
        b"3,4,1,-;EXT4-fs (loop4): Filesystem with casefold feature cannot be mounted without CONFIG_UNICODE\n"
    )
    assert reasons(records, "mount", "-o", "noacl", "/dev/loop4", "/mnt", printed=SEE_LOG) == [
        "ext4: Unknown parameter 'noacl'",
        "EXT4-fs (loop4): Filesystem with casefold feature cannot be mounted without CONFIG_UNICODE",
    ]


def reasons(records: bytes, *argv: str, printed: str = "") -> list[str]:
    done = Completed(argv=argv, returncode=1, stdout="", stderr=printed, duration_s=1.0, usage=USAGE)
    return kernel_log.reasons(kernel_log.parse(records), done)


def test_a_reason_below_a_warning_counts_only_where_the_command_refers_to_the_log() -> None:
    """Linux 6.1 without CONFIG_FS_DAX."""
    records = b"6,1,1,-;EXT4-fs: dax option not supported\n6,2,1,-;EXT4-fs (loop3): mounted filesystem\n"
    argv = ("mount", "-o", "dax=always", "/dev/loop4", "/mnt")
    assert reasons(records, *argv, printed=f"       {SEE_LOG} after failed mount system call.\n") == [
        "EXT4-fs: dax option not supported"
    ]
    assert reasons(records, *argv) == []


def test_a_reason_about_an_array_that_was_never_complete_is_the_command_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mdadm names the array as the study's, and the kernel by its number."""
    monkeypatch.setattr(sysfs, "SYS", tmp_path)
    (tmp_path / "class/block/md126/slaves/sda").mkdir(parents=True)
    (tmp_path / "class/block/md127/slaves").mkdir(parents=True)  # the kernel removes it later
    records = (
        b"3,1,1,-;md/raid10:md127: not enough operational mirrors.\n3,2,1,-;md/raid1:md126: Disk failure\n"
    )
    assert reasons(records, "mdadm", "--create", "/dev/md/fslab-x", "/dev/loop4", "/dev/loop5") == [
        "md/raid10:md127: not enough operational mirrors."
    ]


def test_a_reason_about_a_volume_that_was_never_complete_is_the_command_s() -> None:
    """Linux 6.1: cryptsetup names the disk below, and the kernel the volume that it then removes."""
    records = (
        b"3,1,1,-;device-mapper: table: 254:876543: crypt: Error allocating crypto tfm (-ENOENT)\n"
        b"3,2,1,-;device-mapper: ioctl: error adding target to table\n3,3,1,-;EXT4-fs (loop3): no journal found\n"
    )
    assert reasons(records, "env", "cryptsetup", "luksFormat", "/dev/loop4") == [
        "device-mapper: table: 254:876543: crypt: Error allocating crypto tfm (-ENOENT)",
        "device-mapper: ioctl: error adding target to table",
    ]


def test_warnings_and_errors_are_told_apart(tmp_path: Path) -> None:
    text = (
        "4,1100,1,-;EXT4-fs warning (device loop0): ext4_dx_add_entry:2000: Directory index full!\n"
        "2,1101,1,-;EXT4-fs error (device loop0): ext4_lookup:1: inode #2: comm ls: bad\n SUBSYSTEM=block\n"
    )
    invalid, warning = found(tmp_path, log(1000, 1001), text)
    assert (invalid.severity, warning.severity) == (Severity.INVALID, Severity.WARNING)
    assert lines(invalid) == ["EXT4-fs error (device loop0): ext4_lookup:1: inode #2: comm ls: bad"]
    assert lines(warning) == ["EXT4-fs warning (device loop0): ext4_dx_add_entry:2000: Directory index full!"]


def test_a_log_that_was_empty_is_watched_too(tmp_path: Path) -> None:
    assert len(found(tmp_path, "", log(1009, 1009))) == 1


def test_a_log_that_may_not_be_read_tells_nothing(tmp_path: Path) -> None:
    target = Target(devices=("loop0",), filesystem="ext4", directory=Path("/mnt/x"))
    probe = KernelLog()  # not the registry's probe, which may already have the log open
    taken = {moment: probe.snapshot(target) for moment in probe.moments}
    assert taken[SnapshotMoment.BEFORE]["log"] is None
    assert probe.derive(taken, WORK) == ProbeFinding(values={})
