"""Tests of the system layer on recorded texts: mountinfo, sysfs, swaps, processes, facts; errors; signal handling."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.exc import ProgrammingError

from fslab.errors import (
    FslabError,
    InterruptedBySignal,
    MountError,
    NoSpaceError,
    ToolFailedError,
    UnsafeError,
    nearest,
    similar,
)
from fslab.machine import facts
from fslab.storage import overwrite_check
from fslab.store.database_errors import translated
from fslab.system import (
    block_queue,
    cgroup,
    files,
    loop_devices,
    mountinfo,
    mounts,
    proc,
    process_marks,
    signals,
    sysfs,
    tools,
    waiting,
)
from fslab.system.tool_messages import one_line

# Recorded on Linux 6.18, but the last line: the root file system, tmpfs at a path with a space and a backslash, btrfs
# on a loop device; FUSE of a source that is named like one of its options.
MOUNTINFO = rb"""23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
41 23 0:35 / /tmp/my\040disk\134x rw,relatime - tmpfs fslab\040test rw,size=102400k
44 23 0:50 / /run/fslab/c/mnt rw,noatime shared:5 - btrfs /dev/loop0 rw,compress=zstd:3,space_cache=v2
144 41 0:51 /a\040b /tmp/\303\244 rw,nosuid - fuse.sshfs user_id=0,x\040 rw,user_id=1000,group_id=1000
"""


def test_mountinfo() -> None:
    root, spaced, btrfs, fuse = mountinfo.parse(MOUNTINFO)
    assert (root.device, root.target, root.filesystem, root.source) == (
        "254:0",
        Path("/"),
        "ext4",
        "/dev/vda",
    )
    assert spaced.target == Path("/tmp/my disk\\x")
    assert spaced.source == "fslab test"
    assert btrfs.options == "rw,noatime,rw,compress=zstd:3,space_cache=v2"
    assert (fuse.root, fuse.target, fuse.source) == (
        Path("/a b"),
        Path(os.fsdecode(b"/tmp/\xc3\xa4")),
        "user_id=0,x ",
    )
    assert (fuse.mount_options, fuse.super_options) == ("rw,nosuid", b"rw,user_id=1000,group_id=1000")
    for mount in (root, spaced, btrfs, fuse):
        assert mountinfo.Mount.of(mountinfo.line_of(mount.number, MOUNTINFO) or b"") == mount
    assert mountinfo.line_of(4, MOUNTINFO) is None, "no beginning of 41 or 44"


def test_only_a_disk_with_a_write_cache_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a partition; what is unknown, such as the disk under a network file system, is not."""
    monkeypatch.setattr(sysfs, "SYS", tmp_path)
    for name, kind in (("vda", "write back"), ("vdb", "write through")):
        queue = tmp_path / "class/block" / name / "queue"
        queue.mkdir(parents=True)
        (queue / "write_cache").write_text(f"{kind}\n")
        (queue.parent / f"{name}1").mkdir()
        (tmp_path / f"class/block/{name}1").symlink_to(queue.parent / f"{name}1")
    assert [sysfs.flushed(name) for name in ("vda", "vda1", "vdb", "vdb1", "gone")] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(("latency", "left"), [("2000\n", "-1"), ("0\n", "0\n"), (None, None)])
def test_writeback_throttling_follows_the_kind_of_a_disk_unless_it_is_off(
    latency: str | None, left: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel sets its latency only once, by what the disk was first; -1 is the default of what it is now."""
    monkeypatch.setattr(sysfs, "block_directory", lambda _: tmp_path)
    (tmp_path / "queue").mkdir()
    if latency:
        (tmp_path / "queue/wbt_lat_usec").write_text(latency)
    block_queue.set_rotational(Path("/dev/loop0"), rotational=True)
    assert (tmp_path / "queue/rotational").read_text() == "1"
    assert sysfs.text(tmp_path / "queue/wbt_lat_usec") == (left and left.strip())


def test_sysfs_unknown_is_none(tmp_path: Path) -> None:
    (tmp_path / "number").write_text("512\n")
    (tmp_path / "scheduler").write_text("mq-deadline kyber [none]\n")
    (tmp_path / "words").write_text("write back\n")
    assert sysfs.number(tmp_path / "number") == 512
    assert sysfs.number(tmp_path / "words") is None
    assert sysfs.number(tmp_path / "missing") is None
    assert sysfs.selected(tmp_path / "scheduler") == "none"
    assert sysfs.selected(tmp_path / "words") == "write back"
    assert sysfs.selected(tmp_path / "missing") is None


def test_a_process_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = tmp_path / "17"
    (process / "ns").mkdir(parents=True)
    (process / "ns/mnt").symlink_to("mnt:[1]")
    (process / "mountinfo").write_bytes(b"66 1 7:3 / /a rw shared:1 - ext4 /dev/loop3 rw\n")
    (process / "comm").write_bytes(b"\xff\x0bPPid:\t3\n")
    (process / "status").write_bytes(b"Name:\t\xff\x0bPPid:\t3\nPPid:\t1\n")
    monkeypatch.setattr(mounts, "PROC", tmp_path)
    assert mounts._mounted_by(Path("/dev/loop3")) == ["process 17 (\udcff\x0bPPid:\t3)"]
    assert sysfs.field(process / "status", "PPid") == "1"


def test_loop_devices_of_an_image_and_no_others(tmp_path: Path) -> None:
    for name, backing in (("loop0", "/a/b.img"), ("loop1", "/a/b.img (deleted)"), ("loop2", "/a/b.img2")):
        directory = tmp_path / "block" / name / "loop"
        directory.mkdir(parents=True)
        (directory / "backing_file").write_text(backing + "\n")
    assert loop_devices.attached_to(Path("/a/b.img"), tmp_path) == [Path("/dev/loop0"), Path("/dev/loop1")]


def test_loop_devices_of_an_image_whose_directory_has_another_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    directory = tmp_path / "block/loop0/loop"
    directory.mkdir(parents=True)
    (directory / "backing_file").write_text(f"{tmp_path}/real/b.img\n")
    assert loop_devices.attached_to(tmp_path / "link/b.img", tmp_path) == [Path("/dev/loop0")]


def test_swaps(tmp_path: Path) -> None:
    table = tmp_path / "swaps"
    table.write_text(
        "Filename\t\tType\t\tSize\tUsed\tPriority\n/dev/sda2 partition 100 0 -2\n/my\\040swap file 5 0 -3\n"
    )
    assert overwrite_check._swaps(table) == ["/dev/sda2", "/my swap"]


@pytest.mark.parametrize(
    "path", ["/dev/sda", "/dev/loop0", "/dev/disk/by-id/../../sda", "sda", "/dev/disk/./by-id"]
)
def test_unstable_device_names(path: str) -> None:
    with pytest.raises(UnsafeError):
        overwrite_check.check_name(path)


def test_stable_device_names() -> None:
    for path in ("/dev/disk/by-id/nvme-x", "/dev/disk/by-partuuid/1", "/dev/mapper/vg-lv"):
        overwrite_check.check_name(path)


def finished(code: int, stderr: str = "", stdout: str = "") -> proc.Completed:
    usage = proc.Usage(user_s=0, system_s=0, max_rss_bytes=0, voluntary_switches=0, involuntary_switches=0)
    return proc.Completed(
        argv=("/sbin/mkfs.x", "a b"),
        returncode=code,
        stdout=stdout,
        stderr=stderr,
        duration_s=1.0,
        usage=usage,
    )


def test_a_failed_command_says_how_it_ended_what_it_said_and_how_to_paste_it() -> None:
    error = proc.failed(finished(1, "first\nlast\n"), MountError)
    assert isinstance(error, MountError)
    assert "mkfs.x exited 1: first | last" in str(error)
    assert error.where == "/sbin/mkfs.x 'a b'"
    assert "signal 9" in str(proc.failed(finished(-9)))
    for full in ("No space left on device", "no space left on device", "Disk quota exceeded"):
        assert isinstance(proc.failed(finished(1, stdout=f"cp: error writing 'x': {full}")), NoSpaceError)
    assert "only on stdout" in str(proc.failed(finished(1, stdout="only on stdout")))


XFS_LOG = (
    "log size 1280 blocks too small, minimum size is 1368 blocks\nUsage: mkfs.xfs\n" + "[-b size=num]\n" * 26
)


TRACEBACK = """\
begun
Traceback (most recent call last):
  File "/p/main.py", line 1, in <module>
    code = main(*sys.argv[1:])
           ^^^^^^^^^^^^^^^^^^^
  File "/p/main.py", line 3
  File "/p/queue.py", line 7, in prepare
  File "/p/queue.py", line 9, in fill
ValueError: no room
"""


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        (XFS_LOG, "log size 1280 blocks too small, minimum size is 1368 blocks"),  # mkfs.xfs 6.1
        ("a\n\n  b  \nc\n", "a | b | c"),
        ("Usage: x\n-a\n", "Usage: x | -a"),
        (
            "".join(f"line {number}\n" for number in range(20)) + "ERROR: why\n" + "more\n" * 10,
            "line 0 | line 1 | line 2 | … | ERROR: why | … | more | more | more | more | more",
        ),
        (
            "1\n" * 20 + "database is locked\n" + "2\n" * 20,
            "1 | 1 | 1 | … | database is locked | … | 2 | 2 | 2 | 2 | 2",
        ),
        (
            TRACEBACK,
            "begun | ValueError: no room (in queue.py, line 9, in fill; queue.py, line 7, in prepare; main.py, line 3)",
        ),
    ],
)
def test_the_sentence_that_says_why_is_not_cut(printed: str, says: str) -> None:
    assert one_line("", printed) == says
    assert str(proc.failed(finished(1, printed), reasons=["XFS (loop0): why"])).startswith(
        f"/sbin/mkfs.x 'a b': mkfs.x exited 1: the kernel logged: XFS (loop0): why; it printed: {says}"
    )


@pytest.mark.parametrize(
    ("errors", "output", "says"),
    [
        # mkfs.vfat 4.2
        (
            "Usage: mkfs.vfat [OPTIONS]\n -a\n",
            "mkfs.fat 4.2\nBad FAT type : 99\n\n",
            "mkfs.fat 4.2 | Bad FAT type : 99",
        ),
        ("progress 100%\n", "the moon is full\n", "progress 100% | the moon is full"),
        ("why\n", "line\n" * 20, "why | line | line | line | … | line | line | line | line | line"),
    ],
)
def test_the_sentence_that_says_why_is_found_on_either_stream(errors: str, output: str, says: str) -> None:
    assert one_line(errors, output) == says
    assert str(proc.failed(finished(1, errors, output))).endswith(f"exited 1: {says}")


def test_an_error_names_the_program_and_the_signal() -> None:
    done = replace(finished(-25), argv=("env", "DM_DISABLE_UDEV=1", "/sbin/lvcreate", "vg"))
    assert "lvcreate was ended by signal 25 (File size limit exceeded)" in str(proc.failed(done))


def test_children_get_a_fixed_locale_and_nothing_else_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("SECRET", "x")
    environment = proc.environment({"MORE": "1"})
    assert environment["LC_ALL"] == "C"
    assert environment["MORE"] == "1"
    assert "SECRET" not in environment
    assert "/usr/sbin" in environment["PATH"].split(":")


def test_marked_processes_are_those_with_the_very_mark_that_fslab_does_not_descend_from(
    tmp_path: Path,
) -> None:
    for pid, environ in (
        (11, b"A=1\0FSLAB_MARK=c1\0"),
        (12, b"FSLAB_MARK=c12\0"),
        (13, b"X=FSLAB_MARK=c1\0"),
        (os.getpid(), b"FSLAB_MARK=c1\0"),
        (14, b"FSLAB_MARK=c1\0"),
        (15, bytes(1 << 20) + b"FSLAB_MARK=c1\0"),  # longer than any of a tool, and perhaps endless
    ):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(f"Name:\tx\nPPid:\t{14 if pid == os.getpid() else 1}\n")
        (tmp_path / str(pid) / "environ").write_bytes(environ)
    (tmp_path / "self").mkdir()
    (tmp_path / "99").mkdir()
    assert process_marks.marked_processes("c1", tmp_path) == [11]


def test_processes_that_get_no_environment_are_waited_for_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any user can keep processes in the middle of execve(2), by a FUSE file system that does not answer."""
    for pid in range(11, 21):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "exe").symlink_to("program")
        (tmp_path / str(pid) / "environ").touch()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (program) S{' 0' * 49}\n")
    now_s = 0.0

    def sleep(wait_s: float) -> None:
        nonlocal now_s
        now_s += wait_s
        if now_s > process_marks.BEGIN_DEADLINE_S / 2:
            (tmp_path / "20" / "environ").write_bytes(b"FSLAB_MARK=c1\0")

    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now_s, sleep=sleep))
    assert process_marks.marked_processes("c1", tmp_path) == [20]
    assert now_s < 1.1 * process_marks.BEGIN_DEADLINE_S


@pytest.mark.parametrize(
    ("before", "beside", "after"),
    [("", False, "-memory"), ("cpu memory", False, "cpu memory"), ("", True, "+memory")],
)
def test_a_controller_is_disabled_again_where_no_other_group_can_use_it(
    before: str, beside: bool, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "_own", lambda: tmp_path)
    (switch := tmp_path / "cgroup.subtree_control").write_text(before)
    made = cgroup.create("ours", "memory")
    assert made
    if beside:
        (tmp_path / "theirs").mkdir()
    made.end()
    assert not made.path.exists()
    assert switch.read_text() == after


def test_facts_of_a_machine(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(
        "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n"
    )
    (tmp_path / "proc/meminfo").write_text("MemTotal:       1024 kB\nMemAvailable: 1 kB\n")
    found = facts.gather(tmp_path)
    assert found["cpu"] == "Some CPU @ 2 GHz"
    assert found["memory_bytes"] == 1 << 20
    assert found["hypervisor"] is True
    assert found["governor"] is None
    memory = 24 << 30
    found["memory_bytes"] = memory
    assert facts.identity_changes({**found, "memory_bytes": memory - 400_000}, found) == []
    assert [
        each.partition(":")[0]
        for each in facts.identity_changes({**found, "memory_bytes": memory // 2}, found)
    ] == ["memory_bytes"]
    assert facts.identity_changes({**found, "kernel": "0"}, found) == [f"kernel: {found['kernel']} → 0"]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/dev/data/home-1", "use the name /dev/mapper/data-home--1"),
        ("/dev/dm-3", "/dev/mapper/NAME"),
        ("/dev/md1048574", "/dev/md/NAME"),  # which no machine has
        ("/dev/sda", "/dev/disk/by-id"),
    ],
)
def test_an_unstable_name_s_advice_has_the_form_for_its_kind_of_device(path: str, says: str) -> None:
    with pytest.raises(UnsafeError) as caught:
        overwrite_check.check_name(path)
    assert says in (caught.value.hint or "")


@pytest.mark.parametrize("layout", ["md-raid9", "zfs-raidz", "btrfs-dup", "lvm-cache"])
def test_another_level_of_raid_is_no_misspelling(layout: str) -> None:
    assert similar(layout, ["btrfs-raid0", "btrfs-raid1", "lvm-stripe", "md-raid1", "md-raid5"]) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("raidz1", "md-raid1"), ("zfs-raid0", "btrfs-raid0"), ("lvm-raid1", "md-raid1"), ("vers", "iversion"),
        ("noclear_cache", "inode_cache"), ("has_journal", "journal"), ("strict", "strictatime"),
    ],
)  # fmt: skip
def test_a_name_with_other_words_is_no_misspelling(name: str, known: str) -> None:
    assert similar(name, [known]) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("atiem", "atime"),
        ("noatme", "noatime"),
        ("compress_force", "compress-force"),
        ("random_seed", "randseed"),
    ],
)
def test_a_misspelt_name(name: str, known: str) -> None:
    assert similar(name, ["iversion", known, "errors"]) == known


def test_a_number_that_is_missing_is_a_misspelling_if_only_one_name_has_it() -> None:
    assert similar("ntfs", ["btrfs", "ntfs3", "xfs"]) == "ntfs3"
    assert similar("EXT4", ["ext2", "ext4"]) == "ext4"
    assert similar("ext", ["ext2", "ext3", "ext4", "exfat"]) is None
    assert similar("md-raid1", ["md-raid10", "lvm-stripe"]) is None


def test_nearest_names() -> None:
    assert nearest("etx4", ["ext4", "xfs"]).startswith("did you mean 'ext4'?")
    assert nearest("zzz", ["ext4", "xfs"]) == "known: ext4, xfs"
    assert nearest("x", map(str, range(100))).endswith("…")


def test_errors_say_what_where_and_what_to_do() -> None:
    error = ToolFailedError("it broke", where="here", hint="mend it")
    assert str(error) == "here: it broke\n  → mend it"
    assert str(FslabError("it broke")) == "it broke"


class TestSignals:
    """Tests of the signal handler, called directly: no signal is sent, and no handler is installed."""

    @pytest.fixture(autouse=True)
    def calm(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in (("shields", 0), ("noted", None), ("left_at", None), ("raised", None)):
            monkeypatch.setattr(signals._SignalState, name, value)
        monkeypatch.setattr(os, "write", lambda *_: 0)

    def test_a_signal_raises_once(self) -> None:
        with pytest.raises(InterruptedBySignal) as caught:
            signals._handle(15, None)
        assert caught.value.exit_code == 143
        signals._handle(2, None)

    def test_a_signal_that_was_lost_does_not_stop_the_next_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """If the first exception is lost, a signal after AGAIN_S raises again.

        Python ignores exceptions in callbacks of weak references.
        """
        with pytest.raises(InterruptedBySignal):
            signals._handle(15, None)
        late = time.monotonic() + signals.AGAIN_S + 1
        monkeypatch.setattr(time, "monotonic", lambda: late)
        with pytest.raises(InterruptedBySignal):
            signals._handle(15, None)

    def test_nothing_that_handles_errors_takes_a_signal_for_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Code that handles any error of a tool, such as the query of its version, does not catch an interruption."""

        def interrupted(*_: object, **__: object) -> None:
            raise InterruptedBySignal(15)

        monkeypatch.setattr(tools, "find", lambda _: "/bin/true")
        monkeypatch.setattr(proc, "run", interrupted)
        with pytest.raises(InterruptedBySignal):
            tools.version(tools.Tool(program="asked only here", package=None))
        assert not issubclass(InterruptedBySignal, Exception)

    def test_a_signal_that_an_error_replaced_comes_out_again(self) -> None:
        """An interruption is raised even if the database driver raised another error because of it."""

        def interrupted() -> None:
            try:
                signals._handle(15, None)
            finally:
                raise ProgrammingError("SELECT 1", None, Exception("connection in transaction status ACTIVE"))

        with pytest.raises(InterruptedBySignal) as caught, translated("a store"):
            interrupted()
        assert caught.value.exit_code == 143

    def test_a_signal_that_was_swallowed_comes_out_of_the_block(self) -> None:
        def swallowed() -> None:
            with contextlib.suppress(BaseException):
                signals._handle(15, None)

        with pytest.raises(InterruptedBySignal), signals.kept():
            swallowed()
        # A signal from before the block does not replace an error in the block: clean-up can fail.
        with pytest.raises(ValueError, match="mine"), signals.kept():
            raise ValueError("mine")

    def test_only_the_main_thread_leaves_by_a_signal(self) -> None:
        reached = []

        def other() -> None:
            with signals.kept():
                with contextlib.suppress(BaseException):
                    signals._handle(15, None)
                reached.append(1)
            reached.append(2)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert reached == [1, 2]

    def test_a_signal_in_a_teardown_is_put_off_until_all_is_undone(self) -> None:
        undone: list[str] = []
        with pytest.raises(InterruptedBySignal) as caught:  # noqa: SIM117 - the inner one must end first
            with signals.Teardown() as undo:
                undo.callback(undone.append, "first made")
                undo.callback(signals._handle, 2, None)
                undo.callback(undone.append, "last made")
        assert undone == ["last made", "first made"]
        assert caught.value.exit_code == 130

    def test_a_signal_at_the_first_step_of_a_teardown_is_put_off_too(self) -> None:
        """A signal is handled between two steps of Python: also before the teardown has its shield."""
        undone: list[int] = []

        def step(frame: FrameType, event: str, _argument: object) -> Any:
            if frame.f_code is signals.Teardown.__exit__.__code__ and event == "line":
                sys.settrace(None)
                signals._handle(15, frame)
            return step

        before = sys.gettrace()
        try:
            with pytest.raises(InterruptedBySignal), signals.Teardown() as undo:
                undo.callback(undone.append, 1)
                sys.settrace(step)
        finally:
            sys.settrace(before)
        assert undone == [1]

    def test_what_is_opened_when_a_signal_comes_is_closed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened, real = [], os.open

        def interrupted(*arguments: Any, **more: Any) -> int:
            opened.append(real(*arguments, **more))
            signals._handle(15, None)
            return opened[0]

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", interrupted)
            with pytest.raises(InterruptedBySignal), signals.Teardown() as undo:
                files.held(tmp_path, undo)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(opened[0])

    def test_nested_shields_raise_at_the_outermost(self) -> None:
        with pytest.raises(InterruptedBySignal), signals.shielded():
            with signals.shielded():
                signals._handle(1, None)
            reached = True
        assert reached
