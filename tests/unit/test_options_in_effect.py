"""Tests of what the kernel made of mount options: lists of Linux 6.18 (ext4, XFS, btrfs) and 6.1 (f2fs, jfs)."""

from __future__ import annotations

import pytest

from fslab.storage.filesystems import COMMANDS, REGISTRY
from fslab.storage.options_in_effect import changed, changed_features, ignored, signature

# Recorded from mountinfo and /proc/fs/ext4/loop0/options, on devices that were forbidden to discard.
EXT4 = (
    "rw,relatime,acl,auto_da_alloc,barrier,block_validity,bsddf,commit=5,data=ordered,delalloc,dioread_nolock,"
    "errors=continue,i_version,init_itable=10,inode_readahead_blks=32,journal_checksum,max_batch_time=15000,"
    "max_dir_size_kb=0,min_batch_time=0,nodiscard,nogrpid,noquota,nowarn_on_error,prefetch_block_bitmaps,resgid=0,"
    "resuid=0,stripe=0,user_xattr"
)
XFS = "rw,relatime,inode64,logbsize=32k,logbufs=8,noquota"
BTRFS = "rw,relatime,space_cache=v2,ssd,subvol=/,subvolid=5"
F2FS = (
    "rw,relatime,acl,active_logs=6,alloc_mode=reuse,background_gc=on,discard,discard_unit=block,flush_merge"
)


@pytest.mark.parametrize(
    ("name", "asked", "listed", "found"),
    [
        ("ext4", "defaults", EXT4, {}),
        ("ext4", "discard", EXT4, {"discard": "nodiscard"}),
        ("ext4", "data=ordered,barrier=1,commit=5,auto_da_alloc,stripe=0,async,suid", EXT4, {}),
        ("ext4", "barrier=0,noatime", f"{EXT4},noatime".replace(",barrier", ",nobarrier").replace("relatime,", ""), {}),
        ("ext4", "strictatime,commit=30", EXT4, {"strictatime": "relatime", "commit=30": "commit=5"}),
        ("ext4", "journal_ioprio=7,mb_optimize_scan=0,silent", EXT4, {}),
        ("xfs", "logbsize=32768,nodiscard,noikeep,sysvgroups", XFS, {}),
        ("xfs", "ikeep,discard", XFS, {"ikeep": None, "discard": None}),
        ("xfs", "sunit=0,swidth=0,max_atomic_write=0", XFS, {}),
        ("xfs", "sunit=0", f"{XFS},sunit=128,swidth=512", {"sunit=0": "sunit=128"}),
        ("xfs", "uquota", f"{XFS},usrquota".replace(",noquota", ""), {}),
        ("btrfs", "nodatacow,compress=zstd", f"{BTRFS},compress=zstd:3", {"nodatacow": None}),
        ("btrfs", "compress=zstd:16", f"{BTRFS},compress=zstd:15", {"compress=zstd:16": "compress=zstd:15"}),
        ("btrfs", "compress", f"{BTRFS},compress=zlib:3", {}),
        ("btrfs", "compress=zstd,nodatacow", f"{BTRFS},nodatasum,nodatacow", {"compress=zstd": None}),
        ("btrfs", "max_inline=64k", f"{BTRFS},max_inline=4096", {"max_inline=64k": "max_inline=4096"}),
        ("btrfs", "discard", f"{BTRFS},discard=async", {"discard": "discard=async"}),
        ("btrfs", "discard=sync,treelog,datacow,space_cache=v2,clear_cache", f"{BTRFS},discard", {}),
        ("f2fs", "compress_algorithm=lz4,compress_extension=*", F2FS,
         {"compress_algorithm=lz4": None, "compress_extension=*": None}),
        ("f2fs", "noflush_merge,alloc_mode=default", F2FS,
         {"noflush_merge": "flush_merge", "alloc_mode=default": "alloc_mode=reuse"}),
        ("jfs", "integrity,errors=remount-ro,discard", "rw,relatime,discard=64", {}),
        # What the kernel lists is not known of vfat: only a contradiction counts.
        ("vfat", "flush,uid=7,umask=022", "rw,relatime,uid=7,fmask=0022,dmask=0022", {}),
        ("vfat", "uid=7,fmask=022", "rw,uid=0,fmask=0022", {"uid=7": "uid=0"}),
        ("xfs", "noatime,discard", "", {}),
    ],
)  # fmt: skip
def test_options_that_the_kernel_dropped_or_changed(
    name: str, asked: str, listed: str, found: dict[str, str | None]
) -> None:
    shown = [option for option in listed.split(",") if option]
    assert changed(REGISTRY.get(name), asked, shown) == found


@pytest.mark.parametrize(
    ("name", "one", "other", "same"),
    [
        ("ext4", "defaults", "discard", True),
        ("ext4", "defaults", "dax=inode", True),
        ("ext4", "defaults", "dax=never", False),
        ("ext4", "journal_ioprio=0", "journal_ioprio=7", False),
        ("ext4", "defaults", "silent", False),
        ("vfat", "defaults", "defaults", False),
    ],
)
def test_options_that_the_kernel_does_not_show_keep_stacks_apart(
    name: str, one: str, other: str, same: bool
) -> None:
    listed = ([*EXT4.split(","), *([asked] if "dax" in asked else [])] for asked in (one, other))
    first, second = (
        signature(REGISTRY.get(name), asked, shown) for asked, shown in zip((one, other), listed, strict=True)
    )
    assert (first is not None and first == second) is same


@pytest.mark.parametrize(
    ("asked", "attributes", "listed", "dropped"),
    [
        ("compress=zstd", "", "compress=zstd:3", False),
        ("compress=zstd,nodatasum", "", "nodatasum,compress=zstd:3", True),
        ("compress-force=lzo,nodatasum", "", "nodatasum,compress-force=lzo", True),
        ("compress=zstd", "C", "compress=zstd:3", True),
        ("compress=zstd", "Am", "compress=zstd:3", True),
        ("compress=zstd", "c", "compress=zstd:3", False),
    ],
)
def test_options_that_are_listed_and_overruled(
    asked: str, attributes: str, listed: str, dropped: bool
) -> None:
    """The kernel wrote 16 MiB of zeros uncompressed in each of these cases, and lists ``compress``."""
    btrfs, shown = REGISTRY.get("btrfs"), [*BTRFS.split(","), *listed.split(",")]
    plain = [option for option in shown if not option.startswith("compress")]
    without_effect = ignored(btrfs, shown, (), {"discards", *(f"+{letter}" for letter in attributes)})
    assert bool(changed(btrfs, asked, shown, without_effect)) is dropped
    without = ",".join(option for option in asked.split(",") if not option.startswith("compress"))
    same = signature(btrfs, asked, shown, without_effect) == signature(btrfs, without, plain)
    assert same is dropped


@pytest.mark.parametrize(
    ("name", "asked", "listed"),
    [
        ("btrfs", "discard", f"{BTRFS},discard"),
        ("btrfs", "discard=async", f"{BTRFS},discard=async"),
        ("nilfs2", "discard", "rw,relatime,discard"),
        ("vfat", "discard", "rw,relatime,fmask=0022,discard"),
        ("ext4", "discard", f"{EXT4},discard".replace("nodiscard,", "")),  # Linux 6.1
    ],
)
def test_a_discard_that_is_listed_and_cannot_reach_the_device(name: str, asked: str, listed: str) -> None:
    driver, shown = REGISTRY.get(name), listed.split(",")
    assert changed(driver, asked, shown, ignored(driver, shown, (), {"discards", "a write cache"})) == {}
    without_effect = ignored(driver, shown, (), {"a write cache"})
    assert without_effect["discard"] == "without discards"
    assert changed(driver, asked, shown, without_effect) == {asked: None}
    plain = [option for option in shown if not option.startswith("discard")]
    if driver.unlisted is not None:
        effect = signature(driver, asked, shown, without_effect)
        assert effect == signature(driver, "nodiscard", [*plain, "nodiscard"], without_effect)


@pytest.mark.parametrize("asked", ["auto_da_alloc", "noauto_da_alloc"])
def test_without_delayed_allocation_ext4_has_nothing_to_allocate_early(asked: str) -> None:
    """Linux 6.18 wrote 0 sectors after a rename over a file, with both options."""
    ext4, plain = REGISTRY.get("ext4"), EXT4.replace("delalloc", "nodelalloc")
    listed = plain.replace("auto_da_alloc", asked).split(",")
    without_effect = ignored(ext4, listed, (), {"discards", "a write cache"})
    assert changed(ext4, f"nodelalloc,{asked}", listed, without_effect) == {asked: None}
    effect = signature(ext4, f"nodelalloc,{asked}", listed, without_effect)
    assert effect == signature(ext4, "nodelalloc", plain.split(","), without_effect)


@pytest.mark.parametrize(
    ("name", "asked", "features", "listed", "reason"),
    [
        ("ext4", "max_batch_time=1", "extent", EXT4.replace("max_batch_time=15000", "max_batch_time=1"),
         "without feature has_journal"),
        ("ext4", "journal_ioprio=7", "extent", EXT4, "without feature has_journal"),
        ("ext2", "noload", "ext_attr", f"{EXT4},norecovery", "without feature has_journal"),
        ("ext4", "usrquota", "has_journal", f"{EXT4},quota,usrquota".replace(",noquota", ""), "without feature quota"),
        ("ext4", "barrier=0", "has_journal", EXT4.replace(",barrier", ",nobarrier"), "without a write cache"),
        ("btrfs", "nobarrier", "", f"{BTRFS},nobarrier", "without a write cache"),
        ("xfs", "largeio", "", f"{XFS},largeio", "without swidth or allocsize"),
        ("xfs", "swalloc", "", f"{XFS},swalloc", "without swidth"),
        ("xfs", "noalign", "swidth=0", f"{XFS},noalign", "with feature swidth=0"),
        ("xfs", "inode32", "crc=1", XFS.replace("inode64", "inode32"), "without feature 64-bit inode numbers"),
        ("xfs", "dax=never", "", f"{XFS},dax=never", "without a disk with DAX"),
        ("ext4", "dax=never", "extent", f"{EXT4},dax=never", "without a disk with DAX"),
        ("ext4", "init_itable=1", "extent", EXT4.replace("init_itable=10", "init_itable=1"),
         "without mkfs option lazy_itable_init"),
        ("ext4", "dioread_lock", "has_journal", EXT4.replace("dioread_nolock", "nodioread_nolock"),
         "without feature extent"),
        ("btrfs", "degraded", "", f"{BTRFS},degraded", "without a missing disk"),
        ("btrfs", "skip_balance", "", f"{BTRFS},skip_balance",
         "without an interrupted balance or commands of the study"),
    ],
)  # fmt: skip
def test_options_that_lack_what_they_need(
    name: str, asked: str, features: str, listed: str, reason: str
) -> None:
    driver, shown = REGISTRY.get(name), listed.split(",")
    plain = {"ext4": EXT4, "ext2": EXT4, "xfs": XFS, "btrfs": BTRFS}[name].split(",")
    has = {"discards"} if "cache" in reason else {"discards", "a write cache"}
    without_effect = ignored(driver, shown, features.split(), has)
    assert without_effect[asked.partition("=")[0]] == reason
    assert changed(driver, asked, shown, without_effect) == {asked: None}
    effect = signature(driver, asked, shown, without_effect)
    assert effect == signature(driver, "defaults", plain, ignored(driver, plain, features.split(), has))


@pytest.mark.parametrize(
    ("name", "features", "listed"),
    [
        ("ext4", "has_journal, extent, quota", EXT4),
        ("btrfs", "", f"{BTRFS},skip_balance"),
        ("xfs", "crc=1, 64-bit inode numbers", f"{XFS},noalign,dax=never"),
        ("ext4", "has_journal, extent, quota", f"{EXT4},quota,usrquota"),
        ("ext4", "", EXT4),  # its features are not known
        ("xfs", "", f"{XFS},largeio,allocsize=1024k"),
        ("xfs", "", f"{XFS},largeio,swalloc,sunit=128,swidth=256"),
    ],
)
def test_options_that_have_what_they_need(name: str, features: str, listed: str) -> None:
    shown = listed.split(",")
    names = {option.partition("=")[0] for option in shown}
    has = {"discards", "a write cache", "a disk with DAX", "mkfs option lazy_itable_init", COMMANDS}
    found = [each for each in features.split(", ") if each]
    assert names.isdisjoint(ignored(REGISTRY.get(name), shown, found, has))


@pytest.mark.parametrize(
    ("inode", "groups", "blocks", "long"),
    [
        (512, 4, 65536, False),
        (512, 8, 67108864, False),  # 2 TiB: the last number is 2³² − 8
        (512, 9, 67108864, True),
        (512, 5, 67108865, True),  # a group has numbers for 128 Mi blocks
        (256, 4, 67108864, False),
        (256, 5, 67108864, True),
    ],
)
def test_xfs_has_long_inode_numbers_where_its_last_inode_has_one(
    inode: int, groups: int, blocks: int, long: bool
) -> None:
    words = REGISTRY.get("xfs").feature_words(
        f"meta-data=/dev/loop0 isize={inode} agcount={groups}, agsize={blocks} blks\n"
        "data     =            bsize=4096 blocks=1\nnaming   =version 2 bsize=8192 ascii-ci=0\n"
    )
    assert ("64-bit inode numbers" in words) is long


DUMPE2FS = (
    "Filesystem features:      has_journal ext_attr extent 64bit metadata_csum\nJournal features:   (none)\n"
)
XFS_INFO = (
    "meta-data=/dev/loop0 isize=512\n = crc=1        finobt=1, sparse=1, rmapbt=0\nlog =internal version=2\n"
)
DUMP_SUPER = """\
flags\t\t\t0x1
\t\t\t( WRITTEN )
incompat_flags\t\t0x341
\t\t\t( MIXED_BACKREF |
\t\t\t  EXTENDED_IREF |
\t\t\t  NO_HOLES )
"""


@pytest.mark.parametrize(
    ("name", "options", "output", "found"),
    [
        ("ext4", "-O extents,^quota -b 4096", DUMPE2FS, {}),
        ("ext4", "-O ^has_journal,quota -O64bit", DUMPE2FS,
         {"mkfs -O ^has_journal": "has_journal", "mkfs -O quota": None}),
        ("ext4", "-O ^ext_attr,large_file", DUMPE2FS, {}),  # the kernel sets them at the first use
        ("xfs", "-m crc=1,rmapbt=1 -i size=512 -n version=2", XFS_INFO, {"mkfs -m rmapbt=1": "rmapbt=0"}),
        ("btrfs", "--features extref,^no-holes -R quota", DUMP_SUPER, {"mkfs --features ^no-holes": "no-holes"}),
        ("btrfs", "--features=raid1c34", DUMP_SUPER, {"mkfs --features raid1c34": None}),
        ("f2fs", "-O extra_attr,compression,encrypt", "encryption, extra_attr, pin_file\n",
         {"mkfs -O compression": None}),
        ("jfs", "-O", "", {}),
    ],
)  # fmt: skip
def test_features_that_mkfs_did_not_make(
    name: str, options: str, output: str, found: dict[str, str | None]
) -> None:
    driver = REGISTRY.get(name)
    assert changed_features(driver, options, driver.feature_words(output)) == found


def test_what_mke2fs_takes_from_its_file_is_known() -> None:
    """By one command, two machines with another /etc/mke2fs.conf make different file systems."""
    output = "Inode count:              65536\nBlock size:               4096\nInode size:\t          1024\n"
    made = REGISTRY.get("ext4").sizes_made(output + DUMPE2FS)
    assert made == {"inode_count": "65536", "block_size": "4096", "inode_size": "1024"}
    assert REGISTRY.get("xfs").sizes_made(XFS_INFO) == {}
