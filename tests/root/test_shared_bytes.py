"""Tests of devices that share bytes, such as a disk and its partition: if one is in use or locked, so is the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import loops

from fslab import feasibility
from fslab.campaign.trial_loop import new_id
from fslab.errors import BusyError, UnsafeError
from fslab.plan.expand import expand
from fslab.storage import blank_check, device_overlap, overwrite_check
from fslab.storage.media import REGISTRY as MEDIA
from fslab.study import load
from fslab.system import loop_devices

Make = Callable[[], Path]
Stable = Callable[[Path], str]
MIB = 1 << 20
STUDY = """
title: two media
media: {one: {type: device, path: FIRST}, other: {type: device, path: SECOND}}
stacks: {fs: {medium: [one, other], filesystem: ext4}}
workloads: {write: {tool: fio, rw: write, size: 1m}}
"""


@pytest.fixture
def parted(tmp_path: Path, shell: Any) -> Iterator[tuple[Path, Path, Path]]:
    """Yield a loop device and its two partitions."""
    image = tmp_path / "parted.img"
    image.write_bytes(bytes(64 * MIB))
    device = loops.attached(image)
    made = []
    try:
        for number, start in ((1, 2048), (2, 65536)):
            shell("addpart", device, number, start, 61440)
            made.append(number)
        yield device, Path(f"{device}p1"), Path(f"{device}p2")
    finally:
        for number in made:
            shell("delpart", device, number)
        loop_devices.detach(image)


def test_a_disk_and_its_partition_are_not_two_media(
    parted: tuple[Path, Path, Path], stable: Stable, loop: Make
) -> None:
    disk, first, second = map(stable, parted)
    for pair in ((disk, first), (second, disk), (disk, stable(parted[0]))):
        text = STUDY.replace("FIRST", pair[0]).replace("SECOND", pair[1])
        with pytest.raises(UnsafeError, match="overlaps with"):
            feasibility.check(new_id(), expand(load.load_text(text, "s")), frozenset(pair))
    overwrite_check.check_apart([first, second, stable(loop())])


def test_nor_are_they_two_disks_of_a_layout(
    parted: tuple[Path, Path, Path], stable: Stable, workspace: Any
) -> None:
    medium = MEDIA.get("device")
    disk, first, _ = map(stable, parted)
    workspace.wipe = frozenset({disk, first})
    with pytest.raises(UnsafeError, match="overlaps with"):
        medium.check(medium.parse_options({"path": f"{disk} {first}"}), workspace, disks=2)


def test_a_partition_is_blank_whoever_writes_to_another_one(
    parted: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first, second = parted
    monkeypatch.setattr(blank_check, "TELL_EVERY_S", 0.0)

    def write(_: str) -> None:
        with second.open("r+b") as node:
            node.write(b"x")
            node.flush()
            os.fsync(node.fileno())

    assert blank_check.reason_not_blank(first, write) is None
    write("")
    blank_check.check_unwritten(first)


def test_a_campaign_on_a_partition_keeps_others_off_the_disk(
    parted: tuple[Path, Path, Path], stable: Stable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim on a partition blocks the whole disk, and a claim on the disk blocks its partitions.

    A claim on one partition does not block another one.
    """
    monkeypatch.setattr(overwrite_check, "CLAIM_DEADLINE_S", 0.0)
    disk, first, second = map(stable, parted)
    for one, others in ((first, (disk, first)), (disk, (first, second, disk))):
        claimed = overwrite_check.claim(one)
        try:
            for other in others:
                with pytest.raises(BusyError):
                    overwrite_check.check_unclaimed(other)
        finally:
            overwrite_check.release(claimed)
    claimed = overwrite_check.claim(first)
    overwrite_check.check_unclaimed(second)
    overwrite_check.release(claimed)
    overwrite_check.check_unclaimed(disk)


def test_an_open_command_device_counts_as_a_writer(
    loop: Make, stable: Stable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process can write to a disk through a character device such as /dev/sg0, so that counts as use of the disk.

    A loop device has no such device. The test uses the number of /dev/full instead.
    """
    device, node = loop(), tmp_path / "sg"
    path = stable(device)
    monkeypatch.setattr(device_overlap, "_generic", lambda _: iter(["c1:7"]))
    os.mknod(node, 0o20600, os.makedev(1, 7))
    reader = os.open(node, os.O_RDONLY)
    overwrite_check.check_unused(path)
    writer = os.open(node, os.O_RDWR)
    node.unlink()
    try:
        with pytest.raises(UnsafeError, match=f"is open for writing by process {os.getpid()} "):
            overwrite_check.check_unused(path)
    finally:
        os.close(writer)
        os.close(reader)
    overwrite_check.check_unused(path)


def test_a_character_device_is_not_a_disk(stable: Stable, tmp_path: Path) -> None:
    node = tmp_path / "sg0"
    os.mknod(node, 0o20600, os.makedev(21, 0))
    for each in (node, Path("/dev/null"), Path("/dev/zero")):
        with pytest.raises(UnsafeError, match="is not a block device"):
            overwrite_check.check_unused(stable(each))
