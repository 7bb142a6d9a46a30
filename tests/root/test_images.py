"""Tests of sparse images: which one belongs to a slot, what a copy leaves in memory, and the room that copies leave."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fslab.campaign import cleanup
from fslab.campaign.trial_loop import new_id
from fslab.errors import NoSpaceError, UsageError
from fslab.storage import Workspace, images, media
from fslab.storage.media import REGISTRY as MEDIA
from fslab.system import mounts

MIB = 1 << 20
DATA = os.urandom(MIB)


@pytest.fixture
def volume(loop: Callable[[], Path], tmp_path: Path, shell: Any) -> Iterator[Path]:
    """Yield the mount point of a file system of 64 MiB that is not in memory, as far as the kernel knows."""
    device, target = loop(), tmp_path / "volume"
    shell("mkfs.ext4", "-q", "-O", "^has_journal", device)
    target.mkdir()
    shell("mount", device, target)
    try:
        yield target
    finally:
        mounts.unmount(target, devices=None)


def copies(kind: str, options: Any, workspace: Workspace, *, in_guest: bool = False) -> media.Copies:
    found = MEDIA.get(kind).copies(options, workspace, "m", in_guest=in_guest)
    assert found is not None
    return found


def written(image: Path, size_bytes: int) -> None:
    with image.open("r+b") as file:
        for _ in range(0, size_bytes, MIB):
            file.write(DATA)


def test_the_host_s_image_and_that_of_a_guest_are_two(workspace: Workspace) -> None:
    ram = MEDIA.get("ram")
    options = ram.parse_options({"size": "64m", "room": "16m"})
    with ExitStack() as undo:
        ram.provide(options, workspace, "m", undo)
        host = workspace.runtime / "ram-m" / f"fslab-{workspace.campaign}-m.img"
        guest = ram.drive(options, workspace, "m").image
    assert guest.name == host.name
    for image in (host, guest):
        written(image, 2 * MIB)
    copies("ram", options, workspace, in_guest=True).save("guest's")
    ram.renew(options, workspace, "m", in_guest=True)
    assert (host.read_bytes()[:MIB], guest.stat().st_blocks) == (DATA, 0)
    copies("ram", options, workspace).save("host's")
    ram.renew(options, workspace, "m", in_guest=False)
    assert host.stat().st_blocks == 0
    copies("ram", options, workspace, in_guest=True).load("guest's")
    assert (guest.read_bytes()[:MIB], host.stat().st_blocks) == (DATA, 0)


def test_without_an_image_there_is_nothing_to_renew_or_copy(workspace: Workspace) -> None:
    ram = MEDIA.get("ram")
    options = ram.parse_options({"size": "64m", "room": "16m"})
    ram.drive(options, workspace, "m")
    assert ram.copies(options, workspace, "m", in_guest=False) is None
    ram.renew(options, workspace, "m", in_guest=False)


@pytest.mark.parametrize("kind", ["loop", "directory"])
def test_where_not_even_root_can_write_is_no_place_for_files(
    kind: str, volume: Path, workspace: Workspace, shell: Any
) -> None:
    """A loop medium in a directory that is read-only or immutable ended with a traceback."""
    medium = MEDIA.get(kind)
    options = medium.parse_options({"path": str(volume), **({"size": "16m"} if kind == "loop" else {})})
    shell("mount", "-o", "remount,ro", volume)
    with pytest.raises(UsageError, match="is not writable"):
        medium.check(options, workspace, disks=1)


def test_a_copy_leaves_nothing_to_write_or_to_read_from_memory(volume: Path, shell: Any) -> None:
    loop = MEDIA.get("loop")
    options = loop.parse_options({"size": "32m", "room": "16m", "path": str(volume)})
    with cleanup.opened_workspace(new_id(), frozenset()) as workspace:
        image = loop.drive(options, workspace, "m").image
        written(image, 8 * MIB)
        copies("loop", options, workspace).save("a")
        (copy,) = volume.glob("*_copy-0.img")
        assert (cached(copy, shell), cached(image, shell)) == (0, 0)
        copies("loop", options, workspace).load("a")
        assert (cached(copy, shell), cached(image, shell)) == (0, 0)
        assert image.read_bytes()[: 8 * MIB] == DATA * 8
    assert not list(volume.glob("*.img"))


def cached(file: Path, shell: Any) -> int:
    """Return how many bytes of a file are in the page cache."""
    return int(shell("fincore", "--bytes", "--noheadings", "--output", "RES", file).stdout)


def test_a_copy_does_not_take_the_room_of_the_images(volume: Path) -> None:
    loop = MEDIA.get("loop")
    for room, fits in (("48m", False), ("16m", True)):
        options = loop.parse_options({"size": "60m", "room": room, "path": str(volume)})
        with cleanup.opened_workspace(new_id(), frozenset()) as workspace:
            written(loop.drive(options, workspace, "m").image, 8 * MIB)
            if fits:
                copies("loop", options, workspace).save("a")
            else:
                with pytest.raises(NoSpaceError):
                    copies("loop", options, workspace).save("a")


def test_a_limit_of_the_size_of_files_is_no_fault_of_the_output(workspace: Workspace, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        with pytest.raises(NoSpaceError, match=r"File too large.*\n.*ulimit -f"):
            images.create(tmp_path / "image", 2 * MIB, workspace)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "image").exists()
