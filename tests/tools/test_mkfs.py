"""Tests of each file system's real mkfs on a plain file: smallest size, switches, versions; checked with blkid."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.mkfs import run_mkfs

from fslab.storage.filesystems import REGISTRY
from fslab.system import proc, tools

# Not packaged in Debian 12.
NOT_PACKAGED = {"bcachefs", "zfs"}
MADE = [name for name, driver in REGISTRY if driver.mounted and name not in NOT_PACKAGED]
# Names of blkid(8) that differ from those of fslab.
CALLED = {"ntfs3": "ntfs"}


def made(name: str, image: Path, size_bytes: int, options: str = "") -> proc.Completed:
    with image.open("wb") as file:
        file.truncate(size_bytes)
    return run_mkfs(REGISTRY.get(name).mkfs_argv(options, str(image), discard=False))


@pytest.mark.parametrize("name", MADE)
def test_the_real_mkfs_makes_it_at_its_smallest_size(name: str, tmp_path: Path) -> None:
    for tool in REGISTRY.get(name).tools:
        assert tools.find(tool.program), f"packaging/system-packages.sh installs {tool.package}"
    image = tmp_path / "image"
    done = made(name, image, REGISTRY.get(name).min_size_bytes)
    assert done.returncode == 0, done.stderr
    found = proc.run(["blkid", "-p", "-o", "value", "-s", "TYPE", str(image)], check=False).stdout.strip()
    assert found == CALLED.get(name, name)


# The largest size in MiB that mkfs refuses. The other file systems can be smaller than is useful to measure.
@pytest.mark.parametrize(
    ("name", "mib"), [("f2fs", 48), ("jfs", 15), ("nilfs2", 128), ("reiserfs", 32), ("xfs", 299)]
)
def test_below_it_the_real_mkfs_refuses(name: str, mib: int, tmp_path: Path) -> None:
    assert made(name, tmp_path / "image", mib << 20).returncode != 0


@pytest.mark.parametrize(
    ("name", "feature"),
    [(name, feature) for name, filesystem in REGISTRY for feature in filesystem.switches],
)
def test_the_real_mkfs_knows_the_switches(name: str, feature: str, tmp_path: Path) -> None:
    options = REGISTRY.get(name).switches[feature].mkfs
    done = made(name, tmp_path / "image", 300 << 20, options)
    assert done.returncode == 0, done.stderr


def test_the_tools_say_their_version() -> None:
    for name, filesystem in REGISTRY:
        for tool in filesystem.tools:
            if shutil.which(tool.program, path="/usr/sbin:/usr/bin"):
                assert tools.version(tool), name
