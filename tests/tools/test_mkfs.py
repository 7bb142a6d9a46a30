"""Tests of each file system's real mkfs on a plain file: smallest size, switches, versions; checked with blkid."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from tests.mkfs import run_mkfs

from fslab.storage.filesystems import REGISTRY
from fslab.system import proc, tools
from fslab.system.tool_messages import one_line
from fslab.units import parse_size

# Not packaged in Debian 12.
NOT_PACKAGED = {"bcachefs", "zfs"}
MADE = [name for name, driver in REGISTRY if driver.mounted and name not in NOT_PACKAGED]
# Names of blkid(8) that differ from those of fslab.
PAGE_BYTES = 4096
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
def test_below_it_the_real_mkfs_refuses_and_says_why(name: str, mib: int, tmp_path: Path) -> None:
    done = made(name, tmp_path / "image", mib << 20)
    assert done.returncode != 0
    assert one_line(done.stderr, done.stdout)


@pytest.mark.parametrize(
    ("name", "feature"),
    [(name, feature) for name, filesystem in REGISTRY for feature in filesystem.switches],
)
def test_the_real_mkfs_knows_the_switches(name: str, feature: str, tmp_path: Path) -> None:
    options = REGISTRY.get(name).switches[feature].mkfs
    done = made(name, tmp_path / "image", 300 << 20, options)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "gib", "options"),
    [
        ("ext4", 256, ""),
        ("ext4", 256, "-b 1024"),
        ("ext4", 256, "-b 2048"),
        ("ext4", 256, "-g 8192"),
        ("ext4", 256, "-i 4096"),
        ("ext4", 256, "-O ^metadata_csum"),
        ("ext2", 256, ""),
        ("ext2", 64, "-b 1024"),
        ("xfs", 256, "-l size=64m"),
        ("xfs", 256, "-l size=64m -d agcount=400"),
        ("xfs", 256, "-l size=64m -d agsize=512m"),
        ("jfs", 64, ""),
        ("udf", 256, ""),
        ("ntfs3", 256, ""),
        ("reiserfs", 256, ""),
        ("btrfs", 256, ""),
        ("f2fs", 256, ""),
        ("nilfs2", 256, ""),
        ("vfat", 64, ""),
        *((name, gib, "") for name in ("f2fs", "jfs", "ntfs3") for gib in (0.25, 4)),
    ],
)
def test_the_real_mkfs_writes_no_more_than_is_declared(
    name: str, gib: float, options: str, tmp_path: Path
) -> None:
    image, size_bytes = tmp_path / "image", int(gib * (1 << 30))
    done = made(name, image, size_bytes, options)
    assert done.returncode == 0, done.stderr
    declared, written = REGISTRY.get(name).made_with(options), data_bytes(image)
    assert written <= declared.data(size_bytes)
    if gib < 1 or name not in {"f2fs", "jfs"}:  # they do not grow in proportion
        assert declared.data(size_bytes) <= 3 * written + (12 << 20)


@pytest.mark.parametrize(("mib", "options"), [(300, ""), (4096, ""), (4096, "-l size=80m")])
def test_the_zeros_of_a_journal_that_the_real_mkfs_writes_are_declared(
    mib: int, options: str, tmp_path: Path
) -> None:
    """Blocks of an image are allocated for them."""
    image, size_bytes = tmp_path / "image", mib << 20
    assert made("xfs", image, size_bytes, options).returncode == 0
    declared, taken = REGISTRY.get("xfs").made_with(options), image.stat().st_blocks * 512
    assert declared.data(size_bytes) + declared.zeros(size_bytes) == pytest.approx(taken, rel=0.1)


@pytest.mark.parametrize(
    ("mib", "options"),
    [(64, ""), (511, ""), (512, ""), (1024, ""), (511, "-i 16384"), (511, "-I 512"), (512, "-N 20000")],
)
def test_the_inode_tables_that_the_real_mkfs_makes_are_declared(
    mib: int, options: str, tmp_path: Path
) -> None:
    """Below 512 MiB, mke2fs makes four times as many inodes. On a device it writes their tables."""
    image, size_bytes = tmp_path / "image", mib << 20
    assert made("ext4", image, size_bytes, options).returncode == 0
    told = proc.run(["dumpe2fs", "-h", str(image)]).stdout
    count, inode = (
        int(re.findall(rf"(?m)^{what}:\s+(\d+)$", told)[0]) for what in ("Inode count", "Inode size")
    )
    declared = REGISTRY.get("ext4").made_with(f"{options} -O ^has_journal")
    assert declared.zeros(size_bytes) == pytest.approx(count * inode, rel=0.02)


@pytest.mark.parametrize("tib", [1, 4, 15, 16, 60])
def test_the_inodes_that_the_real_mkfs_plans_are_declared(tib: int, tmp_path: Path) -> None:
    """Without making them: this would write their tables."""
    image = tmp_path / "image"
    with image.open("xb") as file:
        file.truncate(tib << 40)
    told = proc.run(["mkfs.ext4", "-n", "-F", "-b", "4096", str(image)]).stdout
    (inodes,) = re.findall(r"(\d+) inodes", told)
    declared = REGISTRY.get("ext4").made_with("-O ^has_journal").zeros(tib << 40)
    assert declared == pytest.approx(int(inodes) * 256, rel=0.01)


@pytest.mark.parametrize("mib", [64, 127, 128, 511, 1 << 10, 2 << 10, 4 << 10, 16 << 10, 200 << 10])
def test_the_journal_that_the_real_mkfs_makes_is_declared(mib: int, tmp_path: Path) -> None:
    """Without it, the zeros are those of the inode tables."""
    image, size_bytes = tmp_path / "image", mib << 20
    assert made("ext4", image, size_bytes).returncode == 0
    told = proc.run(["dumpe2fs", "-h", str(image)]).stdout
    (journal,) = re.findall(r"(?m)^Total journal size: +(\d+[kM])$", told)
    ext4 = REGISTRY.get("ext4")
    tables_bytes = ext4.made_with("-O ^has_journal").zeros(size_bytes)
    declared = ext4.made_with("").zeros(size_bytes) - tables_bytes
    assert parse_size(journal) <= declared <= 4 * parse_size(journal)


def data_bytes(image: Path) -> int:
    """Return the size of the pages of a sparse file that are not all zeros."""
    found, at = 0, 0
    with image.open("rb") as file:
        while (start := next_data(file.fileno(), at)) is not None:
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            for page in range(start, at, PAGE_BYTES):
                found += PAGE_BYTES * any(os.pread(file.fileno(), PAGE_BYTES, page))
    return found


def next_data(descriptor: int, at: int) -> int | None:
    try:
        return os.lseek(descriptor, at, os.SEEK_DATA)
    except OSError:
        return None


def test_the_tools_say_their_version() -> None:
    for name, filesystem in REGISTRY:
        for tool in filesystem.tools:
            if shutil.which(tool.program, path="/usr/sbin:/usr/bin"):
                assert tools.version(tool), name
