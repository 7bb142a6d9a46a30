"""Tests of abilities: whether a file system can run a workload, and the reason why not."""

from __future__ import annotations

import pytest

from fslab.filesystem_abilities import Ability, Limits, Needs
from fslab.storage.filesystems import REGISTRY

GIB = 1 << 30


def test_nothing_needed_is_always_possible() -> None:
    for _, filesystem in REGISTRY:
        assert filesystem.limits.why_not(Needs()) is None


def test_the_reason_is_named() -> None:
    limits = Limits(lacks={Ability.SYMLINKS: "", Ability.XATTR: "none are stored"})
    assert limits.why_not(Needs(abilities=frozenset({Ability.SYMLINKS}))) == "it needs symbolic links"
    assert limits.why_not(Needs(abilities=frozenset({Ability.XATTR}))) == (
        "it needs extended attributes: none are stored"
    )
    assert limits.why_not(Needs(abilities=frozenset({Ability.REFLINK}))) is None


@pytest.mark.parametrize(
    ("name", "size_bytes", "says"),
    [
        ("vfat", 4 * GIB - 1, None), ("vfat", 4 * GIB, "smaller than 4 GiB"), ("exfat", 4 * GIB, None),
        ("ext3", 2048 * GIB, "smaller than 2 TiB"), ("ext4", 2048 * GIB, None), ("xfs", 1 << 60, None),
    ],
)  # fmt: skip
def test_files_beyond_the_largest_are_refused(name: str, size_bytes: int, says: str | None) -> None:
    why = REGISTRY.get(name).limits.why_not(Needs(largest_file_bytes=size_bytes))
    assert why == says or (why and says and says in why)


@pytest.mark.parametrize(
    ("name", "ability", "possible"),
    [
        ("nilfs2", Ability.DIRECT_WRITES, False), ("nilfs2", Ability.DIRECT_READS, True),
        ("vfat", Ability.HARD_LINKS, False), ("vfat", Ability.PERMISSIONS, False), ("ext2", Ability.FALLOCATE, False),
        ("ext4", Ability.FALLOCATE, True), ("ext4", Ability.REFLINK, False), ("xfs", Ability.REFLINK, True),
        ("vfat", Ability.COLON, False), ("exfat", Ability.COLON, False), ("f2fs", Ability.COLON, True),
        ("jfs", Ability.FALLOCATE, False), ("btrfs", Ability.REFLINK, True), ("udf", Ability.XATTR, False),
    ],
)  # fmt: skip
def test_what_file_systems_declare(name: str, ability: Ability, possible: bool) -> None:
    why = REGISTRY.get(name).limits.why_not(Needs(abilities=frozenset({ability})))
    assert (why is None) is possible
