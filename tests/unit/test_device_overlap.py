"""Tests of which devices share storage, with trees like the kernel's sysfs (Documentation/ABI/testing/sysfs-block)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fslab.errors import UnsafeError
from fslab.storage import device_overlap, overwrite_check
from fslab.system import sysfs


class Tree:
    """Disks, partitions and volumes below a directory that stands for /sys."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.devices = root / "devices"
        (root / "block").mkdir(parents=True)

    def disk(self, name: str, number: str, wwid: str | None = None) -> Path:
        block = self.devices / f"host-{name}" / "block" / name
        self.write(block / "dev", number)
        (self.root / "block" / name).symlink_to(block)
        device = self.devices / f"host-{name}"
        (block / "device").symlink_to(device)
        if wwid:
            self.write(device / "wwid", wwid)
        return block

    def part(self, disk: Path, index: int, number: str, start: int, size: int) -> Path:
        block = disk / f"{disk.name}{index}"
        for name, value in (("partition", index), ("dev", number), ("start", start), ("size", size)):
            self.write(block / name, str(value))
        return block

    def volume(self, name: str, number: str, *parts: Path) -> Path:
        block = self.disk(name, number)
        for part in parts:
            (block / "slaves").mkdir(exist_ok=True)
            (block / "slaves" / part.name).symlink_to(part)
        return block

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(sysfs, "SYS", tmp_path)
    return Tree(tmp_path)


def test_snapshots_of_a_volume_and_of_what_lies_on_it(tree: Tree) -> None:
    """As LVM makes them: dmsetup ls --tree."""
    disk = tree.disk("sda", "8:0")
    other, real, cow = (tree.volume(f"dm-{n}", f"253:{n}", disk) for n in range(3))
    tree.write(real / "dm/uuid", "LVM-group0volume-real")
    tree.write(cow / "dm/uuid", "LVM-group0snapshot-cow")
    origin, snapshot = tree.volume("dm-3", "253:3", real), tree.volume("dm-4", "253:4", real, cow)
    tree.write(snapshot / "dm/name", "data-snap")
    (real / "holders").mkdir()
    (real / "holders/dm-3").symlink_to(origin)
    assert device_overlap.snapshots(origin) == []
    (real / "holders/dm-4").symlink_to(snapshot)
    crypt = tree.volume("dm-5", "253:5", origin)
    assert device_overlap.snapshots(origin) == device_overlap.snapshots(crypt) == ["data-snap"]
    assert (
        device_overlap.snapshots(snapshot)
        == device_overlap.snapshots(other)
        == device_overlap.snapshots(disk)
        == []
    )


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("nvmet/subsystems/s/namespaces/1/device_path", "/dev/sda"),
        ("target/core/fileio_0/x/info",
         "Status: ACTIVATED\n        TCM FILEIO ID: 0        File: /dev/sda  Size: 1  Mode: O_DSYNC Async: 0"),
        ("usb_gadget/g/functions/mass_storage.0/lun.0/file", "/dev/sda"),
        ("../../class/rnbd-server/ctl/devices/x/block_dev/dev", "8:0"),
    ],
)  # fmt: skip
def test_what_the_kernel_exports_is_in_use(
    file: str, text: str, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overwrite_check, "_source_number", {"/dev/sda": "8:0"}.get)
    overwrite_check._check_mounts({"8:0"}, "/dev/disk/by-id/x")
    tree.write(tree.root / "kernel/config" / file, text)
    overwrite_check._check_mounts({"8:16"}, "/dev/disk/by-id/y")
    with pytest.raises(UnsafeError, match="is exported"):
        overwrite_check._check_mounts({"8:0"}, "/dev/disk/by-id/x")


def test_a_partition_and_those_that_overlap_it(tree: Tree) -> None:
    disk = tree.disk("sda", "8:0")
    first, second = tree.part(disk, 1, "8:1", 0, 100), tree.part(disk, 2, "8:2", 100, 100)
    across = tree.part(disk, 3, "8:3", 50, 100)
    assert device_overlap.numbers(disk) == {"8:0", "8:1", "8:2", "8:3"}
    assert device_overlap.numbers(first) == {"8:0", "8:1", "8:3"}
    assert device_overlap.numbers(second) == {"8:0", "8:2", "8:3"}
    assert device_overlap.numbers(across) == {"8:0", "8:1", "8:2", "8:3"}


def test_a_volume_is_written_through_all_that_it_lies_on(tree: Tree) -> None:
    """A logical volume on an md array of a partition and a disk shares storage with all of them.

    It does not share storage with another volume of the array or another partition of the disk.
    """
    one, other = tree.disk("sda", "8:0"), tree.disk("sdb", "8:16")
    part = tree.part(one, 1, "8:1", 0, 100)
    tree.part(one, 2, "8:2", 100, 100)
    array = tree.volume("md0", "9:0", part, other)
    volume, beside = tree.volume("dm-0", "253:0", array), tree.volume("dm-1", "253:1", array)
    assert device_overlap.numbers(volume) == {"253:0", "9:0", "8:0", "8:1", "8:16"}
    assert device_overlap.number(beside) not in device_overlap.numbers(volume)


def test_a_disk_by_another_path(tree: Tree) -> None:
    """Two paths to one disk share its storage: without multipathd, the disk has two names.

    Writing to one of them overwrites what is mounted under the other.
    """
    one, same = tree.disk("sda", "8:0", "naa.5000c500"), tree.disk("sdb", "8:16", "naa.5000c500")
    tree.disk("sdc", "8:32", "naa.5000c501")
    tree.disk("sdd", "8:48")
    first, twin = tree.part(one, 1, "8:1", 0, 100), tree.part(same, 1, "8:17", 0, 100)
    tree.part(same, 2, "8:18", 100, 100)
    assert {each.name for each in device_overlap.same_bytes(one)} == {"sda", "sda1", "sdb", "sdb1", "sdb2"}
    assert device_overlap.numbers(first) == {"8:0", "8:1", "8:16", "8:17"}
    assert device_overlap.number(twin) in device_overlap.numbers(first)


def test_whose_use_excludes_others_from_a_disk_or_partition(tree: Tree) -> None:
    """Another partition of the disk can be in use, and a hidden path of NVMe multipath has no node to ask."""
    one, same = tree.disk("sda", "8:0", "naa.5000c500"), tree.disk("sdb", "8:16", "naa.5000c500")
    first, twin = tree.part(one, 1, "8:1", 0, 100), tree.part(same, 1, "8:17", 0, 100)
    tree.part(same, 2, "8:18", 100, 100)
    assert [*device_overlap.same_extent(one)] == [one, same]
    assert [*device_overlap.same_extent(first)] == [first, twin]
    nvme, hidden = tree.disk("nvme0n1", "259:0", "eui.1"), tree.disk("nvme0c0n1", "", "eui.1")
    (hidden / "dev").unlink()
    assert [*device_overlap.same_extent(nvme)] == [nvme]


def test_character_devices_of_a_disk(tree: Tree) -> None:
    disk = tree.disk("sda", "8:0")
    part = tree.part(disk, 1, "8:1", 0, 100)
    tree.write(tree.devices / "host-sda/scsi_generic/sg3/dev", "21:3")
    tree.write(tree.devices / "host-sda/bsg/0:0:0:0/dev", "247:0")
    nvme = tree.disk("nvme0n1", "259:0")
    tree.write(tree.root / "class/nvme-generic/ng0n1/dev", "242:0")
    tree.write(tree.root / "class/nvme-generic/ng0n2/dev", "242:1")
    assert device_overlap.numbers(part) == {"8:0", "8:1", "c21:3", "c247:0"}
    assert device_overlap.numbers(nvme) == {"259:0", "c242:0"}
