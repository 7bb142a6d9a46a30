"""Tests that fslab refuses to overwrite devices that it must not use, and does not change them."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from tests import loops

from fslab.campaign import cleanup
from fslab.campaign.trial_loop import new_id
from fslab.errors import FslabError, UnsafeError
from fslab.storage import StackDevice, blank_check, overwrite_check
from fslab.storage.media import REGISTRY as MEDIA
from fslab.system import loop_devices, mounts

Make = Callable[[], Path]
Stable = Callable[[Path], str]
DEVICE = MEDIA.get("device")


@contextmanager
def untouched(device: Path) -> Iterator[None]:
    """Check that no byte of the device changes."""
    before = device.read_bytes()
    yield
    assert device.read_bytes() == before


def refused(path: str, wipe: frozenset[str] = frozenset()) -> str:
    """Check that the device is refused as a medium, and return the message."""
    options = DEVICE.parse_options({"path": path})
    with cleanup.opened_workspace(new_id(), wipe) as workspace, ExitStack() as undo:
        with pytest.raises(UnsafeError):
            DEVICE.check(options, workspace, disks=1)
        with pytest.raises(UnsafeError) as caught:
            DEVICE.provide(options, workspace, "slot", undo)
    assert caught.value.hint
    return str(caught.value)


@pytest.mark.parametrize("path", ["/dev/sda", "/dev/vda", "/dev/loop0", "/dev/nvme0n1", "loop0", "disk.img"])
def test_an_unstable_name_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="stable"):
        DEVICE.parse_options({"path": path})


def test_dots_in_a_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\.\."):
        DEVICE.parse_options({"path": "/dev/disk/by-id/../../vda"})


def test_a_missing_device_is_refused() -> None:
    assert "no such device" in refused("/dev/disk/by-id/fslab-there-is-none")


def test_a_file_is_not_a_device(stable: Stable, tmp_path: Path) -> None:
    image = tmp_path / "a file.img"
    image.write_bytes(b"precious")
    assert "not a block device" in refused(stable(image))
    assert image.read_bytes() == b"precious"


def test_a_mounted_device_is_refused_whatever_its_name_and_even_with_wipe(
    loop: Make, stable: Stable, tmp_path: Path, shell: Any
) -> None:
    device, target = loop(), tmp_path / "mounted here"
    shell("mkfs.ext4", "-q", device)
    target.mkdir()
    shell("mount", device, target)
    try:
        (target / "precious").write_text("data")
        name = stable(device)
        link_to_link = stable(Path(name))
        for path in (name, link_to_link):
            assert "is mounted at" in refused(path)
            assert "is mounted at" in refused(path, frozenset({path, str(device)}))
        assert (target / "precious").read_text() == "data"
    finally:
        mounts.unmount(target, devices=None)


def test_a_mount_in_another_namespace_is_seen(loop: Make, stable: Stable, tmp_path: Path, shell: Any) -> None:
    device, target = loop(), tmp_path / "hidden"
    shell("mkfs.ext4", "-q", device)
    target.mkdir()
    script = 'mount --make-rprivate / && mount "$1" "$2" && echo ready && exec sleep 60'
    hidden = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(device), str(target)], stdout=subprocess.PIPE
    )
    try:
        assert hidden.stdout is not None
        assert hidden.stdout.readline() == b"ready\n"
        assert mounts.at(target) is None
        path = stable(device)
        assert "in use" in refused(path, frozenset({path}))
    finally:
        hidden.kill()
        hidden.communicate()


def test_a_swap_device_is_refused(loop: Make, stable: Stable, shell: Any) -> None:
    device = loop()
    shell("mkswap", device)
    if shell("swapon", device, check=False).returncode != 0:
        pytest.skip("this kernel does not let us swap on a loop device")
    try:
        path = stable(device)
        assert "swap" in refused(path, frozenset({path}))
    finally:
        shell("swapoff", device)


def partition_table(device: Path) -> None:
    """Write a DOS partition table with one Linux partition at sector 2048, 40000 sectors long."""
    entry = struct.pack("<B3sB3sII", 0, b"\0\0\0", 0x83, b"\0\0\0", 2048, 40000)
    with device.open("r+b") as node:
        node.seek(446)
        node.write(entry + bytes(48) + b"\x55\xaa")


def test_a_partition_table_is_refused_without_wipe(loop: Make, stable: Stable) -> None:
    device = loop()
    partition_table(device)
    path = stable(device)
    with untouched(device):
        assert "--wipe" in refused(path)
    assert overwrite_check._signatures(device) == ["dos"]


def test_a_disk_whose_partition_is_mounted_is_refused_even_with_wipe(
    stable: Stable, tmp_path: Path, shell: Any
) -> None:
    image, target = tmp_path / "disk.img", tmp_path / "partition"
    image.write_bytes(bytes(64 << 20))
    partition_table(image)
    device = loops.attached(image, "--partscan")
    try:
        part = Path(f"{device}p1")
        if not part.exists():  # a kernel that cannot read DOS tables: add the partition explicitly
            shell("addpart", device, 1, 2048, 40000)
        shell("mkfs.ext4", "-q", part)
        assert "has partitions" in refused(stable(device))
        target.mkdir()
        shell("mount", part, target)
        try:
            path = stable(device)
            assert "is mounted at" in refused(path, frozenset({path}))
        finally:
            mounts.unmount(target, devices=None)
    finally:
        loop_devices.detach(image)


def test_a_file_system_is_refused_without_wipe(loop: Make, stable: Stable, shell: Any) -> None:
    device = loop()
    shell("mkfs.ext4", "-q", device)
    with untouched(device):
        assert "--wipe" in refused(stable(device))


def test_a_loop_device_of_another_process_is_refused_even_when_blank(loop: Make, stable: Stable) -> None:
    device = loop()
    with untouched(device):
        assert "that fslab did not create" in refused(stable(device))


def test_a_device_that_another_program_holds_is_refused(loop: Make, stable: Stable) -> None:
    device = loop()
    holder = os.open(device, os.O_RDWR | os.O_EXCL)
    try:
        path = stable(device)
        assert "in use" in refused(path, frozenset({path}))
    finally:
        os.close(holder)


def test_wiping_another_device_does_not_help(loop: Make, stable: Stable, shell: Any) -> None:
    device, other = loop(), loop()
    shell("mkfs.ext4", "-q", device)
    with untouched(device):
        refused(stable(device), frozenset({stable(other)}))


def test_named_with_wipe_it_is_used_and_left_blank(loop: Make, stable: Stable, shell: Any) -> None:
    device = loop()
    shell("mkfs.ext4", "-q", device)
    path = stable(device)
    with cleanup.opened_workspace(new_id(), frozenset({path})) as workspace, ExitStack() as undo:
        options = DEVICE.parse_options({"path": path})
        DEVICE.check(options, workspace, disks=1)
        provided = DEVICE.provide(options, workspace, "slot", undo)
        assert isinstance(provided, StackDevice)
        assert provided.path == device
        DEVICE.recheck([options], workspace)
        shell("mkfs.xfs", "-q", "-f", "-m", "crc=1", device, check=False)
        assert DEVICE.provide(options, workspace, "slot", undo) == replace(provided, facts=ANY)
    assert shell("wipefs", "--noheadings", device).stdout == ""


def test_one_that_somebody_else_has_written_since_is_not_wiped(
    loop: Make, stable: Stable, shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody makes a file system on the first disk while the second one is read."""
    devices = [loop(), loop()]
    paths = [stable(device) for device in devices]

    def check_blank(path: str, *_: object) -> None:  # of loop devices, it says that they have data
        assert blank_check.reason_not_blank(Path(path), print) is None
        if path == paths[1]:
            shell("mkfs.ext4", "-q", devices[0])

    monkeypatch.setattr(overwrite_check, "check_blank", check_blank)
    with cleanup.opened_workspace(new_id(), frozenset()) as workspace, ExitStack() as undo:
        options = DEVICE.each(DEVICE.parse_options({"path": " ".join(paths)}), 2)
        for each in options:
            DEVICE.provide(each, workspace, "slot", undo)
        with pytest.raises(UnsafeError, match="was written after it was found to be blank"):
            DEVICE.recheck(options, workspace)
    assert "ext4" in shell("wipefs", "--noheadings", devices[0]).stdout


def test_a_name_that_leads_elsewhere_for_a_moment_gets_no_other_disk_wiped(
    loop: Make, stable: Stable, shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = loop(), loop()
    path = stable(first)
    check_unused = overwrite_check.check_unused

    def meanwhile(named: str) -> Path:
        Path(path).unlink()
        Path(path).symlink_to(second)
        try:
            return check_unused(named)
        finally:
            Path(path).unlink()
            Path(path).symlink_to(first)

    shell("mkfs.ext4", "-q", second)
    with (
        untouched(second),
        cleanup.opened_workspace(new_id(), frozenset({path})) as workspace,
        ExitStack() as undo,
    ):
        options = DEVICE.parse_options({"path": path})
        DEVICE.provide(options, workspace, "slot", undo)
        DEVICE.recheck([options], workspace)
        shell("mkfs.ext4", "-q", first)
        monkeypatch.setattr(overwrite_check, "check_unused", meanwhile)
    assert shell("wipefs", "--noheadings", first).stdout == ""


def test_another_disk_under_the_same_name_is_refused(loop: Make, stable: Stable, tmp_path: Path) -> None:
    first, second = loop(), loop()
    path = stable(first)
    with cleanup.opened_workspace(new_id(), frozenset({path})) as workspace, ExitStack() as undo:
        options = DEVICE.parse_options({"path": path})
        DEVICE.provide(options, workspace, "slot", undo)
        link = Path(path)
        link.unlink()
        link.symlink_to(second)
        with untouched(second), pytest.raises(FslabError, match="another disk"):
            DEVICE.provide(options, workspace, "slot", undo)
        link.unlink()
        link.symlink_to(first)
