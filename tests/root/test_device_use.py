"""Tests that a device is refused if a process has it open for writing, or if it is not proved to be blank."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import loops
from tests.disk_server import Server

from fslab.campaign import launch
from fslab.campaign.observer import Observer
from fslab.errors import BusyError, UnsafeError
from fslab.storage import blank_check, overwrite_check
from fslab.store.store import Store
from fslab.study import load
from fslab.system import files, loop_devices, mounts, sysfs

Make = Callable[[], Path]
Stable = Callable[[Path], str]
MIB = 1 << 20

HOLD = """
import ctypes, mmap, os, sys, threading
how, node, major, minor = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def hold(*flags):
    os.mknod(node, 0o60600, os.makedev(major, minor))
    opened = [os.open(node, each) for each in flags]
    os.unlink(node)
    return opened
def ready():
    print("ready", flush=True)
    sys.stdin.read()
if how == "mapped":
    held = hold(os.O_RDWR)
    mapped = mmap.mmap(*held, 4096)
    os.close(*held)
    mapped.flush()
elif how == "mapped often":  # only the mapping in the middle can be made writable
    opened = hold(os.O_RDONLY, os.O_RDWR, os.O_RDONLY)
    mapped = [mmap.mmap(each, 4096, prot=mmap.PROT_READ) for each in opened]
    os.closerange(3, 64)
elif how == "own table":
    def thread():
        assert ctypes.CDLL(None).unshare(0x400) == 0
        hold(os.O_WRONLY)
        ready()
    threading.Thread(target=thread).start()
    sys.exit()
else:
    hold({"read": os.O_RDONLY, "write": os.O_WRONLY, "both": os.O_RDWR}[how])
ready()
"""


@contextmanager
def held(device: Path, tmp_path: Path, how: str, *before: str) -> Iterator[int]:
    """Run a process that holds the device open through its own device node, already removed. Yield its process id."""
    number = device.stat().st_rdev
    argv = [
        *before, sys.executable, "-c", HOLD, how, str(tmp_path / "n"), str(os.major(number)), str(os.minor(number)),
    ]  # fmt: skip
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def parted(tmp_path: Path, shell: Any) -> Iterator[Path]:
    """Yield a loop device with two partitions."""
    image = tmp_path / "parted.img"
    image.write_bytes(bytes(64 * MIB))
    device = loops.attached(image)
    made = []
    try:
        for number, start, length in ((1, 2048, 32768), (2, 40960, 32768)):
            shell("addpart", device, number, start, length)
            made.append(number)
        yield device
    finally:
        for number in made:
            shell("delpart", device, number)
        loop_devices.detach(image)


def test_the_name_of_a_source_that_users_choose_is_not_looked_at(
    loop: Make, stable: Stable, tmp_path: Path, shell: Any
) -> None:
    """The source of a tmpfs, or of FUSE, is any text. It can lie below a file system whose server does not answer."""
    device = loop()
    shell("mount", "-t", "tmpfs", "-o", "size=1m", device, tmp_path)
    try:
        assert overwrite_check.check_unused(stable(device)) == device
        assert mounts._mounted_by(device) == []
    finally:
        shell("umount", tmp_path)


class TestWriters:
    @pytest.mark.parametrize("how", ["write", "both", "mapped", "mapped often", "own table"])
    def test_one_by_a_node_elsewhere_that_is_gone(
        self, how: str, loop: Make, stable: Stable, tmp_path: Path
    ) -> None:
        device = loop()
        path = stable(device)
        with held(device, tmp_path, how) as pid, pytest.raises(UnsafeError, match=f"by process {pid} "):
            overwrite_check.check_unused(path)
        assert overwrite_check.check_unused(path) == device

    def test_one_in_another_mount_namespace(self, loop: Make, stable: Stable, tmp_path: Path) -> None:
        device = loop()
        script = 'mount -t tmpfs fslab-test "$1" && shift && exec "$@"'
        own = ("unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path))
        with held(device, tmp_path, "write", *own):
            assert not (tmp_path / "n").exists()
            with pytest.raises(UnsafeError, match="is open for writing by process"):
                overwrite_check.check_unused(stable(device))

    def test_readers_are_not_writers(self, loop: Make, stable: Stable, tmp_path: Path) -> None:
        device = loop()
        with held(device, tmp_path, "read"):
            assert overwrite_check.check_unused(stable(device)) == device

    def test_a_loop_device_on_it_by_a_name_that_is_gone(
        self, loop: Make, stable: Stable, tmp_path: Path, shell: Any
    ) -> None:
        device, node = loop(), tmp_path / "n"
        os.mknod(node, 0o60600, device.stat().st_rdev)
        upper = str(loops.attached(node))
        try:
            node.unlink()
            with pytest.raises(UnsafeError, match=f"by the loop device {Path(upper).name}"):
                overwrite_check.check_unused(stable(device))
        finally:
            shell("losetup", "--detach", upper)

    def test_a_loop_device_without_a_node_can_lie_on_it(
        self, loop: Make, stable: Stable, tmp_path: Path, shell: Any
    ) -> None:
        """As in a container, whose /dev does not get nodes of new devices: what it lies on is unknown."""
        device, node = loop(), tmp_path / "n"
        path = stable(device)
        os.mknod(node, 0o60600, device.stat().st_rdev)
        upper = str(loops.attached(node))
        try:
            node.unlink()
            script = 'mount --bind /dev/null "$1" && exec "$2" -c "$3" "$4"'
            ask = "import sys; from fslab.storage import overwrite_check; overwrite_check.check_unused(sys.argv[1])"
            own = ("unshare", "--mount", "sh", "-c", script, "sh", upper)
            said = shell(*own, sys.executable, ask, path, check=False).stderr
        finally:
            shell("losetup", "--detach", upper)
        assert f"{upper}: it is unknown which device or file this loop device lies on" in said
        assert f"mknod {upper} b 7 " in said

    @pytest.mark.parametrize("over", ["device", "file"])
    def test_loop_devices_share_what_they_lie_on(
        self,
        over: str,
        loop: Make,
        stable: Stable,
        tmp_path: Path,
        shell: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        device = loop()
        below = (
            device if over == "device" else sysfs.text(sysfs.block_directory(device) / "loop/backing_file")
        )
        upper = loops.attached(str(below))
        try:
            with (
                held(device, tmp_path, "write"),
                pytest.raises(UnsafeError, match="is open for writing by process"),
            ):
                overwrite_check.check_unused(stable(upper))
            with pytest.raises(UnsafeError, match="overlaps with"):
                overwrite_check.check_apart([stable(device), stable(upper)])
            # As the kernel opens the second disk of a btrfs, or one that is mounted in another mount namespace.
            with (
                files.opened(device, os.O_RDONLY | os.O_EXCL),
                pytest.raises(UnsafeError, match=rf"is in use \({device}: "),
            ):
                overwrite_check.check_unused(stable(upper))
            assert overwrite_check.check_unused(stable(upper)) == upper
            monkeypatch.setattr(overwrite_check, "CLAIM_DEADLINE_S", 0.0)
            claimed = overwrite_check.claim(stable(upper))
            with pytest.raises(BusyError, match="has locked this device"):
                overwrite_check.check_unclaimed(stable(device))
            overwrite_check.release(claimed)
            overwrite_check.check_unclaimed(stable(device))
        finally:
            shell("losetup", "--detach", upper)

    def test_the_image_below_a_loop_device_is_open(self, loop: Make, stable: Stable) -> None:
        """As by a virtual machine whose disk it is."""
        device = loop()
        path = stable(device)
        image = Path(sysfs.text(sysfs.block_directory(device) / "loop/backing_file") or "")
        with image.open("rb"):
            assert overwrite_check.check_unused(path) == device
        with (
            image.open("r+b"),
            pytest.raises(UnsafeError, match=f"is open for writing by process {os.getpid()} "),
        ):
            overwrite_check.check_unused(path)

    def test_a_disk_and_its_partitions_share_their_writers(
        self, parted: Path, stable: Stable, tmp_path: Path
    ) -> None:
        first, second = Path(f"{parted}p1"), Path(f"{parted}p2")
        with held(first, tmp_path, "write"):
            for each in (parted, first):
                with pytest.raises(UnsafeError, match="is open for writing by process"):
                    overwrite_check.check_unused(stable(each))
            assert overwrite_check.check_unused(stable(second)) == second
        with held(parted, tmp_path, "write"):
            for each in (parted, first, second):
                with pytest.raises(UnsafeError, match="is open for writing by process"):
                    overwrite_check.check_unused(stable(each))


class TestBlank:
    def test_data_between_all_samples_is_found(self, loop: Make) -> None:
        """The whole device is read, so that data in 40 of each 64 KiB is found."""
        device = loop()
        with device.open("r+b") as node:
            for offset in range(2 * MIB, 62 * MIB, 64 << 10):
                node.seek(offset + (20 << 10))
                node.write(os.urandom(40 << 10))
        assert "not blank" in (blank_check.reason_not_blank(device, print) or "")

    def test_one_byte_is_enough_and_erased_flash_is_blank(self, loop: Make) -> None:
        device = loop()
        assert blank_check.reason_not_blank(device, print) is None
        with device.open("r+b") as node:
            node.write(b"\xff" * (3 * MIB))
        assert blank_check.reason_not_blank(device, print) is None
        with device.open("r+b") as node:
            node.seek(33 * MIB + 12345)
            node.write(b"x")
        assert "not blank" in (blank_check.reason_not_blank(device, print) or "")

    def test_what_is_not_read_in_time_needs_wipe(
        self, loop: Make, stable: Stable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        device = loop()
        path = stable(device)
        # Otherwise the device is refused because it is a loop device that fslab did not create.
        read = sysfs.text
        monkeypatch.setattr(sysfs, "text", lambda path: None if path.name == "backing_file" else read(path))
        overwrite_check.check_blank(path, [], print)
        monkeypatch.setattr(blank_check, "LIMIT_S", 0.0)
        blank_check._proved.clear()
        with pytest.raises(UnsafeError, match=r"only 0 B of 64 MiB could be read") as caught:
            overwrite_check.check_blank(path, [], print)
        assert f"--wipe {path}" in (caught.value.hint or "")
        overwrite_check.check_blank(path, [path], print)

    def test_how_far_it_is_is_reported(self, loop: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(blank_check, "TELL_EVERY_S", 0.0)
        told: list[str] = []
        blank_check.reason_not_blank(device := loop(), told.append)
        assert f"checking that {device} is blank: 50% read" in told

    def test_a_proof_holds_until_something_is_written(
        self, loop: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        device = loop()
        assert blank_check.reason_not_blank(device, print) is None
        with monkeypatch.context() as patched:
            patched.setattr(blank_check, "LIMIT_S", 0.0)
            assert blank_check.reason_not_blank(device, print) is None
        with device.open("r+b") as node:
            node.seek(20 * MIB + (20 << 10))
            node.write(b"x")
            node.flush()
            os.fsync(node.fileno())
        assert "not blank" in (blank_check.reason_not_blank(device, print) or "")

    def test_a_device_that_cannot_be_read_is_refused(self, loop: Make) -> None:
        device = loop()
        os.truncate(Path(sysfs.text(sysfs.block_directory(device) / "loop/backing_file") or ""), 32 * MIB)
        with pytest.raises(UnsafeError, match="cannot be read"):
            blank_check.reason_not_blank(device, print)

    def test_what_follows_a_bad_sector_is_not_taken_for_blank(self, serve: Callable[..., Server]) -> None:
        server = serve()
        device = server.attach()
        server.ask("arm", effect="error", op="read", start=MIB, end=MIB + 4096)
        with pytest.raises(UnsafeError, match="cannot be read"):
            blank_check.reason_not_blank(device, print)

    def test_a_device_that_is_written_during_the_check_is_not_blank(
        self, loop: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        device = loop()
        monkeypatch.setattr(blank_check, "TELL_EVERY_S", 0.0)

        def write_behind(text: str) -> None:
            if text.endswith("50% read"):
                write(device)

        assert blank_check.reason_not_blank(device, write_behind) == "was written while it was read"

    @pytest.mark.parametrize("synced", [True, False])
    def test_what_came_through_the_whole_disk_is_not_hidden_by_the_partition_s_cache(
        self, synced: bool, parted: Path
    ) -> None:
        part = Path(f"{parted}p1")
        with part.open("rb") as keeps_it_cached, parted.open("r+b", buffering=0) as disk:
            assert not any(keeps_it_cached.read())
            disk.seek((2048 << 9) + 5 * MIB)
            disk.write(b"x")
            if synced:
                os.fsync(disk.fileno())
            assert "not blank" in (blank_check.reason_not_blank(part, print) or "")

    def test_a_proof_of_a_partition_ends_with_a_write_through_the_whole_disk(self, parted: Path) -> None:
        part = Path(f"{parted}p1")
        assert blank_check.reason_not_blank(part, print) is None
        write(parted)
        with pytest.raises(UnsafeError, match="was written after it was found to be blank"):
            blank_check.check_unwritten(part)

    def test_a_proof_ends_with_the_first_write(self, loop: Make) -> None:
        device = loop()
        assert blank_check.reason_not_blank(device, print) is None
        blank_check.check_unwritten(device)
        assert blank_check.reason_not_blank(device, print) is None
        write(device)
        with pytest.raises(UnsafeError, match="was written after it was found to be blank"):
            blank_check.check_unwritten(device)
        blank_check.check_unwritten(device)


def write(device: Path) -> None:
    """Write one byte at the start of a device."""
    with device.open("r+b") as node:
        node.write(b"x")
        node.flush()
        os.fsync(node.fileno())


class TestNames:
    @pytest.fixture
    def cyclic(self, stable: Stable) -> str:
        """Return a link in /dev/disk/by-id that points to itself."""
        path = stable(Path("/nothing"))
        itself = Path(f"{path}-itself")
        itself.symlink_to(path)
        itself.replace(path)  # the directory is never empty: another test would remove it
        return path

    def test_a_link_to_itself_stops_nothing(self, cyclic: str, loop: Make, stable: Stable) -> None:
        device = loop()
        path = stable(device)
        with pytest.raises(UnsafeError) as caught:
            overwrite_check.check_name(str(device))
        assert caught.value.hint == f"use the name {path}"
        assert overwrite_check.check_unused(path) == device
        with pytest.raises(UnsafeError, match="no such device"):
            overwrite_check.check_unused(cyclic)


STUDY = """
title: one device
media: {disk: {type: device, path: PATH}}
stacks: {fs: {medium: disk, filesystem: ext4}}
workloads: {write: {tool: fio, rw: write, size: 1m}}
"""


def conditions(path: str) -> launch.RunConditions:
    return launch.RunConditions(wipe=frozenset({path}))


def test_a_foreign_lock_leaves_nothing_stored(
    loop: Make, stable: Stable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overwrite_check, "CLAIM_DEADLINE_S", 0.0)
    device = loop()
    path, study = stable(device), tmp_path / "one.yaml"
    study.write_text(STUDY.replace("PATH", path))
    foreign = os.open(device, os.O_RDONLY)
    try:
        fcntl.flock(foreign, fcntl.LOCK_EX)
        with Store.open(str(tmp_path / "store.db"), create=True) as store:
            with pytest.raises(BusyError, match=f"locked this device: process {os.getpid()} "):
                launch.create(launch.of_study(load.load(study), str(study)), store, conditions(path))
            assert store.campaigns() == []
    finally:
        os.close(foreign)


def test_a_lock_that_comes_after_the_check_leaves_nothing_stored_either(
    loop: Make, stable: Stable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overwrite_check, "CLAIM_DEADLINE_S", 0.0)
    device = loop()
    path, study = stable(device), tmp_path / "one.yaml"
    study.write_text(STUDY.replace("PATH", path))
    with Store.open(str(tmp_path / "store.db"), create=True) as store:
        campaign = launch.of_study(load.load(study), str(study))
        launch.create(campaign, store, conditions(path))
        foreign = os.open(device, os.O_RDONLY)
        try:
            fcntl.flock(foreign, fcntl.LOCK_EX)
            with pytest.raises(BusyError):
                launch.run(campaign, store, Observer(), conditions(path), budget_s=None, new=True)
        finally:
            os.close(foreign)
        assert store.campaigns() == []
