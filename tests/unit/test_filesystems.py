"""Tests of the command lines of all file systems, and of refused options. tests/root runs the real mkfs."""

from __future__ import annotations

import pytest

from fslab.filesystem_abilities import Ability, Needs
from fslab.storage.filesystems import REGISTRY, FileSystem

ALL = [name for name, driver in REGISTRY if driver.mounted]


@pytest.mark.parametrize("name", ALL)
def test_the_contract_is_kept(name: str) -> None:
    filesystem = REGISTRY.get(name)
    assert filesystem.name == name
    assert filesystem.tools
    assert filesystem.summary
    assert filesystem.mkfs_argv("", "/dev/x", discard=False)[-1] == "/dev/x"
    argv = filesystem.mount_argv("defaults", "/dev/x", "/m")
    assert (argv[0], argv[-4:-2], argv[-1]) == ("mount", ["-o", "defaults"], "/m")
    assert argv[-2] in {"/dev/x", "x"}


def test_without_a_file_system_nothing_is_made_or_mounted_and_options_are_refused() -> None:
    none = REGISTRY.get("none")
    assert none.mkfs_argv("", "/dev/x", discard=False) == none.mount_argv("defaults", "/dev/x", "/m") == []
    assert none.mkfs_argv("", "/dev/x", discard=True) == ["blkdiscard", "/dev/x"]
    none.check_mkfs_options("")
    none.check_mount_options("defaults")
    with pytest.raises(ValueError, match="'none' has no mkfs"):
        none.check_mkfs_options("-b 4096")
    with pytest.raises(ValueError, match="'none' is never mounted"):
        none.check_mount_options("noatime")


# The options of each mkfs without and with discard. The mkfs programs that are not listed have no such option.
DISCARDS = {
    "btrfs": ("-K", None), "xfs": ("-K", None), "nilfs2": ("-K", None), "bcachefs": (None, "--discard"),
    "reiser4": (None, "-d"), "f2fs": ("-t 0", "-t 1"),
    **dict.fromkeys(("ext2", "ext3", "ext4"), ("nodiscard", "discard")),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_discard_is_off_when_it_must_be(name: str) -> None:
    off = REGISTRY.get(name).mkfs_argv("", "/dev/x", discard=False)
    on = REGISTRY.get(name).mkfs_argv("", "/dev/x", discard=True)
    if name not in DISCARDS:
        assert off == on
        return
    word_off, word_on = DISCARDS[name]
    assert word_off is None or f" {word_off} " in " ".join(off).replace(",", " ")
    assert word_on is None or f" {word_on} " in " ".join(on).replace(",", " ")
    assert off != on


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("f2fs", "mkfs.f2fs -f -t 0 -s 2 /dev/x"),
        ("jfs", "mkfs.jfs -q -s 8 /dev/x"),
        ("nilfs2", "mkfs.nilfs2 -f -q -K -B 512 /dev/x"),
        ("reiserfs", "mkreiserfs -q -f -f -h r5 /dev/x"),
        ("reiser4", "mkfs.reiser4 -y -f -b 4096 /dev/x"),
        ("bcachefs", "bcachefs format --force --quiet --data_checksum=xxhash /dev/x"),
        ("zfs", "zpool create -f -o cachefile=none -O mountpoint=legacy -o ashift=12 x /dev/x"),
        ("exfat", "mkfs.exfat -c 32k /dev/x"),
        ("vfat", "mkfs.vfat -F 32 -I --mbr=n -s 8 /dev/x"),
        ("ntfs3", "mkfs.ntfs -F -Q -q -c 8192 /dev/x"),
        ("udf", "mkudffs --media-type=hd --udfrev=0x0201 /dev/x"),
    ],
)
def test_mkfs_as_it_is_run(name: str, argv: str) -> None:
    filesystem, words = REGISTRY.get(name), argv.removesuffix(" x /dev/x").removesuffix(" /dev/x").split()
    given = words[-1] if words[-1].startswith("--") else " ".join(words[-2:])
    filesystem.check_mkfs_options(given)
    assert filesystem.mkfs_argv(given, "/dev/x", discard=False) == argv.split()


def test_a_fat_size_of_the_users_own_replaces_ours() -> None:
    argv = REGISTRY.get("vfat").mkfs_argv("-F 16 -s 8", "/dev/x", discard=False)
    assert argv == ["mkfs.vfat", "-I", "--mbr=n", "-F", "16", "-s", "8", "/dev/x"]


@pytest.mark.parametrize("name", ["nilfs2", "exfat", "bcachefs"])
def test_helpers_that_would_start_something_are_left_out(name: str) -> None:
    assert REGISTRY.get(name).mount_argv("defaults", "/dev/x", "/m") == [
        "mount", "-i", "-t", name, "-o", "defaults", "/dev/x", "/m",
    ]  # fmt: skip


def test_zfs_is_mounted_by_its_pool() -> None:
    assert REGISTRY.get("zfs").mount_argv("noatime", "/dev/x", "/m")[-2:] == ["x", "/m"]


def test_limits_of_old_versions_hold_for_these_and_for_unknown_ones() -> None:
    direct = Needs(abilities=frozenset({Ability.DIRECT_READS}))
    for version, lacks in ((None, True), ("2.1.11", True), ("2.3", False), ("2.10.0", False)):
        assert ("OpenZFS before 2.3" in (REGISTRY.get("zfs").why_not(direct, version) or "")) is lacks


def test_a_pool_is_imported_from_its_own_nodes_and_a_group_comes_before_them() -> None:
    zfs = REGISTRY.get("zfs")
    assert zfs.mkfs_argv("raidz2 -O recordsize=8k", "/dev/x", discard=True)[-5:] == [
        "-O", "recordsize=8k", "x", "raidz2", "/dev/x",
    ]  # fmt: skip
    assert (zfs.import_argv(["/dev/x", "/dev/x.1"]) or [])[-5:] == ["-d", "/dev/x", "-d", "/dev/x.1", "x"]
    assert [name for name, driver in REGISTRY if driver.imported] == ["zfs"]


@pytest.mark.parametrize(
    ("name", "release", "says"),
    [
        ("reiserfs", "6.18.4-fc", "last in 6.12"), ("reiserfs", "6.12.101", None), ("bcachefs", "6.6.0", "new in 6.7"),
        ("bcachefs", "6.18.0", "6.17"), ("bcachefs", "6.12.0+deb13-amd64", None), ("ntfs3", "5.10.0", "5.15"),
        ("ntfs3", "6.1.0", None), ("reiser4", "6.1.0", "never"), ("ext4", "6.1.0", None), ("f2fs", "nonsense", None),
    ],
)  # fmt: skip
def test_the_kernel_s_version_says_why_it_lacks_one(name: str, release: str, says: str | None) -> None:
    why = REGISTRY.get(name).kernels.why_missing(release)
    assert (says is None and why is None) or (says and why and says in why)


@pytest.mark.parametrize("name", ALL)
def test_the_switches_are_options_that_the_file_system_has(name: str) -> None:
    filesystem = REGISTRY.get(name)
    for switch in filesystem.switches.values():
        filesystem.check_mkfs_options(switch.mkfs)
        if switch.mount:
            filesystem.check_mount_options(switch.mount)
        assert str(switch)


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
        ("ext3", "data=ordered,commit=30"), ("f2fs", "mode=fragment:block,fsync_mode=strict"),
        ("f2fs", "compress_algorithm=zstd:6"), ("jfs", "nointegrity"), ("nilfs2", "order=strict,nobarrier"),
        ("reiserfs", "notail,data=writeback"), ("reiser4", "txmod=wa"), ("bcachefs", "compression=lz4"),
        ("f2fs", "checkpoint=enable,lookup_mode=perf,nocompress_extension=jpg"),
        ("ext4", "nojournal_checksum,nouid32,warn_on_error,no_mbcache,inlinecrypt"),
        ("exfat", "uid=1000,gid=1000,umask=022"), ("vfat", "uid=0,flush,utf8"), ("ntfs3", "uid=5,prealloc,discard"),
        ("udf", "uid=5,noadinicb"), ("zfs", "noatime"),
    ],
)  # fmt: skip
def test_good_mount_options(name: str, options: str) -> None:
    REGISTRY.get(name).check_mount_options(options)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("ext4", "noatme", "noatime"), ("ext4", "data=jornal", "journal"), ("ext4", "data", "needs a value"),
        ("ext4", "noatime=1", "takes no value"), ("ext4", "commit=soon", "whole number"),
        ("ext4", "commit=²", "whole number"), ("btrfs", 'compress=zstd:"1', "cannot be"),
        ("ext2", "data=journal", "no mount option 'data'"), ("xfs", "logbsize=big", "size"),
        ("xfs", "logbufs=9", "logbufs"), ("xfs", "logdev=/dev/sda", "no mount option"),
        ("btrfs", "compress=brotli", "compress"), ("btrfs", "device=/dev/sda", "no mount option"),
        ("ext4", "bind", "no mount option"), ("ext4", "loop", "no mount option"),
        ("f2fs", "mode=fast", "adaptive"), ("nilfs2", "cp=3", "no mount option 'cp'"), ("jfs", "resize=5", "resize"),
        ("vfat", "uid=me", "whole number"), ("nilfs2", "pp=0", "'pp'"), ("reiserfs", "jdev=/dev/sda", "no mount"),
        ("ext4", "x-systemd.automount", "no mount"), ("ext4", "", "empty mount option"),
    ],
)  # fmt: skip
def test_bad_mount_options_say_what_is_meant(name: str, options: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        REGISTRY.get(name).check_mount_options(options)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("xfs", "noatime,nobarrier,delaylog,logbufs=8", ["removed in Linux 4.19", "removed in Linux 4.0"]),
        ("ext4", "data=writeback,nobh,barrier=0,oldalloc", ["Linux 3.15", "Orlov"]),
        ("btrfs", "inode_cache,recovery,compress=zstd", ["removed in Linux 5.11", "rescue=usebackuproot"]),
        ("ext4", "nofail,x-systemd.device-timeout=5,_netdev,noatime", ["/etc/fstab"] * 3),
        ("ext4", "metadata_csum,^has_journal,stride=16", ["mkfs_options '-O metadata_csum'", "'-O ^has_journal'",
                                                          "'-E stride=16'"]),
        ("ext3", "bigalloc", ["mkfs_options '-O bigalloc'"]), ("btrfs", "no-holes", ["mkfs_options '-O no-holes'"]),
        ("btrfs", "skinny-metadata", ["mkfs_options '-O skinny-metadata'"]),
        ("xfs", "reflink=1,crc,agcount=4,sw=2", ["mkfs_options '-m reflink=1'", "'-m crc'", "'-d agcount=4'",
                                                 "'-d sw=2'"]),
        ("f2fs", "compression", ["mkfs_options '-O compression'"]), ("exfat", "utf8", ["without effect"]),
        ("nilfs2", "nogc,cp=2", ["mount.nilfs2", "snapshot"]),
        ("ext4", "compress=zstd", ["an option of btrfs"]), ("zfs", "recordsize=8k", ["properties"]),
        ("ext4", "nodelalocc,atiem,loop", ["did you mean 'nodelalloc'", "did you mean 'atime'", "type 'loop'"]),
        ("xfs", "nobarier,delay_log", ["did you mean 'nobarrier'? removed", "did you mean 'delaylog'? removed"]),
        ("xfs", "noatime,,wsync,", ["delete a comma"] * 2), ("f2fs", "checkpoint=disable", ["would delete"]),
        ("ext4", "uid=5", ["an option of exfat"]), ("btrfs", "device=/dev/sdb", ["a layout"]),
        ("ext4", "hard,timeo=14,vers=4.2,nolock,credentials=x", ["network file systems"] * 5),
        ("ntfs3", "big_writes,locale=C,norecover", ["user space"] * 3), ("ext4", "mand,noatime", ["Linux 5.15"]),
        ("ext4", "usrjquota=a.user,jqfmt=vfsv1", ["quota files"] * 2),
        ("xfs", "context=x,nobootwait", ["SELinux", "fstab"]),
        ("ext4", "subvol=@,recordsize=8k,nosymfollow", ["an option of btrfs", "an option of zfs"]),
        ("btrfs", "noclear_cache", ["known:"]),
        ("xfs", "biosize=16,bigtime,su=64k", ["known:", "-m bigtime", "-d su=64k"]),
        ("ext4", "nojournal,has_journal,xattr=sa", ["known:", "-O has_journal", "an option of zfs"]),
        ("udf", "session=1,strict,novrs", ["known:"] * 3), ("bcachefs", "fix_errors", ["known:"]),
    ],
)  # fmt: skip
def test_every_wrong_mount_option_is_reported_with_its_reason(
    name: str, options: str, says: list[str]
) -> None:
    found = REGISTRY.get(name).mount_mistakes(options)
    assert len(found) == len(says)
    assert all(why in mistake for mistake, why in zip(found, says, strict=True)), found
    wrong_advice = [each for each in found if "did you mean" in each and "did you mean" not in " ".join(says)]
    assert not wrong_advice


def test_every_wrong_mkfs_option_is_reported() -> None:
    found = REGISTRY.get("ext4").mkfs_mistakes("-b 4096 -Q 5 --journal size=4 -M")
    assert [mistake.split("'")[1] for mistake in found] == ["-Q", "--journal", "-M"]


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
        ("ext4", "-Jdevice=UUID=1", "another"), ("ext4", "-n", "not know or"), ("ext4", "-b '4096", "quotation"),
        ("ext4", "-o noatime,data=journal", "write 'mount_options: noatime,data=journal'"),
        ("xfs", "-ologbsize=256k", "'mount_options: logbsize=256k'"),
        ("btrfs", "--compress=zstd", "'mount_options: compress=zstd'"),
        ("ext4", "data=writeback", "'mount_options: data=writeback'"), ("ext4", "-K", "known: -C"),
        ("ext4", "sda", "not know or"), ("f2fs", "-c /dev/sdb", "another file or device"),
        ("f2fs", "-c sdb", "not know or"),
        ("jfs", "-j sdb", "not know or"), ("reiserfs", "-j sdb", "not know or"), ("reiserfs", "-B bad", "not know or"),
        ("vfat", "-l bad", "not know or"), ("vfat", "-C", "not know or"), ("exfat", "-f", "not know or"),
        ("ntfs3", "-n", "not know or"), ("udf", "--new-file", "not know or"), ("zfs", "-R /mnt", "another file"),
        ("zfs", "-O mountpoint=/", "another file"), ("zfs", "-O recordsiz=8k", "did you mean 'recordsize'"),
        ("zfs", "-o cachefile=none", "not know or allow"), ("zfs", "-O atime", "needs a value"),
        ("zfs", "mirror", "not know or"), ("nilfs2", "-n", "not know or"), ("bcachefs", "sdb", "not know or"),
        ("btrfs", "-O list-all", "makes no file system"), ("btrfs", "-R list-all", "makes no file system"),
    ],
)  # fmt: skip
def test_bad_mkfs_options(name: str, options: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        REGISTRY.get(name).check_mkfs_options(options)


ENDS = ("panic", "reboot", "PANIC", "panic_on_error", "oops", "halt")


@pytest.mark.parametrize("name", ALL)
def test_no_option_of_any_file_system_takes_the_machine_down(name: str) -> None:
    for value in ENDS:
        refuses(REGISTRY.get(name), value)


def refuses(filesystem: FileSystem, value: str) -> None:
    """Check that no mount option and no flag of mkfs can have this value."""
    for option in ("errors", "onerror", "fatal_errors", "failmode", *filesystem.mount_options):
        with pytest.raises(ValueError, match="stop the whole machine"):
            filesystem.check_mount_options(f"noatime,{option}={value}")
    with pytest.raises(ValueError, match="stop the whole machine"):
        filesystem.check_mount_options(value)
    for flag in ("-e", "-o", "-O", *filesystem.mkfs_flags):
        for written in (
            f"{flag} {value}",
            f"{flag}={value}" if flag.startswith("--") else f"{flag}{value}",
            f"{flag} errors={value}",
            f"{flag}='a,b={value}'",
        ):
            with pytest.raises(ValueError, match=r"stop the whole machine"):
                filesystem.check_mkfs_options(written)


@pytest.mark.parametrize("name", ALL)
def test_no_driver_declares_what_the_rule_refuses(name: str) -> None:
    """A message that suggests the nearest declared value must not suggest one that is refused."""
    declared = " ".join(f"{option}={form}" for option, form in REGISTRY.get(name).mount_options.items())
    assert not {"panic", "reboot"} & set(declared.replace("|", "=").replace(" ", "=").split("="))


@pytest.mark.parametrize("name", ALL)
def test_a_value_of_no_declared_form_is_a_plain_word(name: str) -> None:
    filesystem = REGISTRY.get(name)
    for option in [option for option, form in filesystem.mount_options.items() if form.startswith("any")]:
        filesystem.check_mount_options(f"{option}=utf8")
        for value in ("../../x", "a b", "$(x)", "a\nb", "x" * 300):
            with pytest.raises(ValueError, match="takes A-Z"):
                filesystem.check_mount_options(f"{option}={value}")
