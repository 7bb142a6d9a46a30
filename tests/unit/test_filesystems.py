"""Every file system's options → argv, and options → message. The real mkfs is in tests/root."""

from __future__ import annotations

import pytest

from fslab.storage.filesystems import REGISTRY

ALL = REGISTRY.names()


@pytest.mark.parametrize("name", ALL)
def test_the_contract_is_kept(name: str) -> None:
    filesystem = REGISTRY.get(name)
    assert filesystem.name == name
    assert filesystem.tools
    assert filesystem.summary
    assert filesystem.mkfs_argv("", "/dev/x", discard=False)[-1] == "/dev/x"
    assert filesystem.mount_argv("", "/dev/x", "/m")[-4:] == ["-o", "defaults", "/dev/x", "/m"]


@pytest.mark.parametrize("name", ALL)
def test_discard_is_off_when_it_must_be(name: str) -> None:
    argv = " ".join(REGISTRY.get(name).mkfs_argv("", "/dev/x", discard=False))
    assert "nodiscard" in argv or " -K " in argv
    other = " ".join(REGISTRY.get(name).mkfs_argv("", "/dev/x", discard=True))
    assert "nodiscard" not in other
    assert " -K " not in other


def test_ext4_initialises_nothing_lazily_also_beside_the_users_own_extended_options() -> None:
    argv = REGISTRY.get("ext4").mkfs_argv("-E stride=16 -b 4096 -Estripe_width=32", "/dev/x", discard=False)
    assert argv == [
        "mkfs.ext4", "-F", "-q", "-E",
        "lazy_itable_init=0,lazy_journal_init=0,nodiscard,stride=16,stripe_width=32", "-b", "4096", "/dev/x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ext4", "defaults"), ("ext4", "noatime,nodiratime"), ("ext4", "noatime,data=journal"),
        ("ext4", "noatime,data=writeback,barrier=0"), ("xfs", "noatime,inode64"), ("xfs", "noatime,logbufs=8"),
        ("xfs", "noatime,logbufs=8,logbsize=256k"), ("btrfs", "noatime,space_cache=v2"),
        ("btrfs", "noatime,compress=zlib"), ("btrfs", "noatime,compress=zstd"), ("btrfs", "compress-force=zstd:3"),
        ("btrfs", "discard=async"), ("btrfs", "discard"), ("ext2", "acl,nouser_xattr"),
        ("ext3", "data=ordered,commit=30"),
    ],
)  # fmt: skip
def test_good_mount_options(name: str, options: str) -> None:
    REGISTRY.get(name).check_mount_options(options)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("ext4", "noatme", "noatime"), ("ext4", "data=jornal", "journal"), ("ext4", "data", "needs a value"),
        ("ext4", "noatime=1", "takes no value"), ("ext4", "commit=soon", "whole number"),
        ("ext2", "data=journal", "no mount option 'data'"), ("xfs", "logbsize=big", "size"),
        ("xfs", "logbufs=9", "logbufs"), ("xfs", "logdev=/dev/sda", "no mount option"),
        ("btrfs", "compress=brotli", "compress"), ("btrfs", "device=/dev/sda", "no mount option"),
        ("ext4", "bind", "no mount option"), ("ext4", "loop", "no mount option"),
        ("ext4", "x-systemd.automount", "no mount"), ("ext4", "", "no mount option ''"),
    ],
)  # fmt: skip
def test_bad_mount_options_say_what_is_meant(name: str, options: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        REGISTRY.get(name).check_mount_options(options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ext4", "-b 4096 -O ^has_journal"), ("ext4", "-b4096"), ("xfs", "-m reflink=0 -d agcount=8"),
        ("btrfs", "--nodesize=16k -m single"), ("btrfs", "--csum xxhash"), ("btrfs", "-M"), ("ext2", ""),
    ],
)  # fmt: skip
def test_good_mkfs_options(name: str, options: str) -> None:
    REGISTRY.get(name).check_mkfs_options(options)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("ext4", "-b", "needs a value"), ("btrfs", "--nodsize 4k", "--nodesize"), ("btrfs", "-M=1", "takes no value"),
        ("ext4", "/dev/sda", "another file or device"), ("btrfs", "-m single /dev/sdb", "another file or device"),
        ("xfs", "-l logdev=/dev/sdb", "another file or device"), ("xfs", "-l size=10m,logdev=sdb", "another"),
        ("xfs", "-d file,name=x", "another"), ("xfs", "-r rtdev=x", "another"), ("ext4", "-J device=UUID=1", "another"),
        ("ext4", "-Jdevice=UUID=1", "another"), ("ext4", "-n", "no option"), ("ext4", "-b '4096", "quotation"),
        ("ext4", "sda", "no option"),
    ],
)  # fmt: skip
def test_bad_mkfs_options(name: str, options: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        REGISTRY.get(name).check_mkfs_options(options)
