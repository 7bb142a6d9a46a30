"""The common parts of the ext family: mke2fs(8) and the mount options of Documentation/admin-guide/ext4.rst.

Since Linux 3.x the ext4 driver also serves ext2 and ext3 mounts (CONFIG_EXT4_USE_FOR_EXT2), so all three share one set
of mount options, except options of features that a member lacks.
"""

import re
import shlex
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from fslab.filesystem_abilities import Ability, Limits
from fslab.storage import Stripe
from fslab.storage.crash_promises import Promise, Promises, at_once
from fslab.storage.filesystems import (
    TIB,
    FileSystem,
    JournalElsewhere,
    Made,
    OptionSwitch,
    naming,
    of_each,
    options,
    valued,
)
from fslab.system.tools import Tool
from fslab.units import format_size, parse_size

MKE2FS_FLAGS: Mapping[str, str] = valued("-b -C -E -g -G -i -I -J -m -N -O -r -T") | naming("-L -U")

EXT2_MOUNT_OPTIONS: Mapping[str, str] = options(
    "acl noacl user_xattr nouser_xattr bsddf minixdf grpid nogrpid bsdgroups sysvgroups "
    "errors=continue|remount-ro resuid=int resgid=int sb=int debug discard nodiscard noload "
    "quota=any? usrquota=any? grpquota=any? noquota barrier=0|1? nobarrier nouid32 warn_on_error "
    "nowarn_on_error"
)

JOURNAL_MOUNT_OPTIONS: Mapping[str, str] = options(
    "data=journal|ordered|writeback commit=int journal_checksum nojournal_checksum "
    "journal_async_commit data_err=ignore|abort journal_ioprio=0|1|2|3|4|5|6|7 norecovery"
)

EXT4_MOUNT_OPTIONS: Mapping[str, str] = options(
    "delalloc nodelalloc auto_da_alloc=0|1? noauto_da_alloc dioread_lock dioread_nolock "
    "nodioread_nolock block_validity noblock_validity init_itable=int? noinit_itable "
    "inode_readahead_blks=int stripe=int max_batch_time=int min_batch_time=int max_dir_size_kb=int "
    "i_version lazytime nombcache no_mbcache inlinecrypt mb_optimize_scan=0|1? prefetch_block_bitmaps "
    "no_prefetch_block_bitmaps dax=always|never|inode? prjquota=any? fc_debug_force"
)

# fs/ext4/super.c, Opt_removed: "Ignoring removed %s option". Linux 3.15 ignores all of them already.
_IGNORED = "without effect in ext4 (Linux 3.15 and newer ignore it)"
REMOVED_OPTIONS: Mapping[str, str] = of_each(
    {
        "bh nobh": f"{_IGNORED}: it chose between ways of caching blocks",
        "orlov oldalloc": f"{_IGNORED}: the Orlov allocator is always used",
        "mblk_io_submit nomblk_io_submit": f"{_IGNORED}: blocks are always written together",
        "check nocheck": f"{_IGNORED}: bitmaps are not checked at a mount",
        "reservation noreservation": f"{_IGNORED}: ext4 preallocates instead",
        "journal": f"{_IGNORED}: it was for journals of ext3 in an old format",
        "extents noextents": "it is a feature: mkfs_options '-O ^extents'",
    }
)

# Promises for a power cut. fs/ext4/ext4.h: s_feature_compat and s_journal_inum in the superblock, at byte 1024; and
# s_errors and s_mount_opts, which hold unless the mount has an option.
FEATURE_COMPAT, HAS_JOURNAL = 1024 + 0x5C, 0x4
JOURNAL_INODE = 1024 + 0xE0
ERRORS, PANIC = 1024 + 0x3C, 3
MOUNT_OPTIONS, MOUNT_OPTIONS_BYTES = 1024 + 0x200, 64
_JOURNAL = "ext4/journal.rst: protects the file system against metadata inconsistencies"
_NO_JOURNAL = "Documentation/filesystems/ext2.rst, Journaling: without a journal, e2fsck must repair it"
_NAMES = "fs/ext4/fsync.c: fsync commits the transaction with the name; without a journal, ext4_sync_parent"
_NO_CHILDREN = "fs/ext4/fsync.c, ext4_fsync_nojournal: writes the directory, not the new inodes that it names"
_ATTRIBUTES = "fs/ext4/fsync.c: fsync commits the transaction of the inode's last change; fstests generic/066"
_REMOVAL = (
    "fs/ext4/fsync.c: fsync commits the transaction of the inode's last change; fstests generic/764, 792"
)
_NO_ATTRIBUTES = "fstests generic/066 and generic/489 are for file systems with a journal only"
_NO_BARRIER = (
    "ext4.rst, barrier: barriers make volatile disk write caches safe to use; else a cache needs a battery"
)

_SIZES_MADE = frozenset({"Block size", "Inode size", "Inode count"})  # dumpe2fs(8)
BLOCK_BYTES = 4096
INODE_BYTES, RATIO_BYTES = 256, 16 << 10  # /etc/mke2fs.conf
# An inode for each 4, 16, 32 and 64 KiB: types small, default, big and huge (misc/mke2fs.c, parse_fs_type).
_TABLES = ((0, 4.0), (512 << 20, 1.0), (4 * TIB, 0.5), (16 * TIB, 0.25))
GROUP_BLOCKS = 8 * BLOCK_BYTES
_MORE_GROUPS = {1024: 12, 2048: 4}  # more data with blocks of this size than with 4 KiB
ALL_BITMAPS_BYTES = 50 << 20  # of 1 TiB
NO_REFLINK = {Ability.REFLINK: "no two files share blocks"}
# Block maps instead of extents. The largest file follows from three levels of 4-byte pointers on 4 KiB blocks, and
# from i_blocks in sectors of 512 bytes.
BLOCK_MAPPED = Limits(
    lacks={Ability.FALLOCATE: "only files with extents can have unwritten blocks", **NO_REFLINK},
    largest_file_bytes=(2 << 40) - 1,
)


class ExtFileSystem(FileSystem):
    """Base of ext2, ext3 and ext4: no work in the background after mkfs and mount.

    Lazy initialisation would write inode tables and the journal during the first trials (measured: 96 MB in 15 s on an
    idle new ext4). In the first seconds after a mount, the kernel would read the block bitmaps of all groups (since
    Linux 5.13; fs/ext4/mballoc.c, ext4_mb_prefetch): on a modelled hard disk 33 reads for an ext4 of 64 GiB, 508 for an
    ext3, which take 0.2 and 2.5 s of a trial.
    """

    repaired_statuses = frozenset({0, 1})  # e2fsck(8): 1 if errors were corrected

    tools: ClassVar[tuple[Tool, ...]] = ()
    log_prefixes = ("EXT4-fs", "EXT3-fs", "EXT2-fs", "JBD2", "ext4", "ext3", "ext2")
    min_size_bytes = 16 << 20
    own_bytes = 1 << 20  # mostly inodes: 1.2 MiB of 16 (ext2), 5.5 of 64
    made = Made(
        data_bytes=6 << 20, data_tib_bytes=72 << 20, zero_tib_bytes=TIB // RATIO_BYTES * INODE_BYTES,
        zero_shares=_TABLES, journal_bytes=1 << 30,
    )  # fmt: skip
    switches: ClassVar[Mapping[str, OptionSwitch]] = {"quotas": OptionSwitch(mount="usrquota")}
    mkfs_flags = MKE2FS_FLAGS
    # ext4(5), "FILE SYSTEM FEATURES", and mke2fs(8).
    mkfs_words: ClassVar[Mapping[str, str]] = {
        "-O": "64bit bigalloc casefold dir_index dir_nlink ea_inode encrypt ext_attr extent extra_isize "
        "fast_commit filetype flex_bg has_journal huge_file inline_data large_dir large_file metadata_csum "
        "metadata_csum_seed meta_bg mmp orphan_file project resize_inode sparse_super sparse_super2 "
        "stable_inodes uninit_bg verity",
        "-E": "encoding encoding_flags lazy_itable_init lazy_journal_init num_backup_sb packed_meta_blocks "
        "quotatype root_owner stride stripe_width stripe-width",
    }
    removed_options = REMOVED_OPTIONS
    # fs/ext4/super.c, _ext4_show_options and ext4_param_specs; seen with Linux 6.1 and 6.18.
    listed_as: ClassVar[Mapping[str, str]] = {
        "barrier=0": "nobarrier", "barrier=1": "barrier", "bsdgroups": "grpid", "sysvgroups": "nogrpid",
        "auto_da_alloc=0": "noauto_da_alloc", "auto_da_alloc=1": "auto_da_alloc", "dioread_lock": "nodioread_nolock",
        "noload": "norecovery", "dax": "dax=always", "no_mbcache": "nombcache",
    }  # fmt: skip
    unlisted = frozenset(
        {"data_err=ignore", "dax=inode", "i_version", "nowarn_on_error", "prefetch_block_bitmaps"}
    )
    unshown = frozenset({"inlinecrypt", "journal_ioprio", "mb_optimize_scan", "sb"})
    # Listed by Linux 6.18 without a journal, or without any support of quotas. To a disk without a cache it sent the
    # same writes with and without barriers.
    overruled: ClassVar[Mapping[str, frozenset[str]]] = of_each(
        {
            "max_batch_time min_batch_time journal_ioprio noload norecovery": frozenset(
                {"^feature has_journal"}
            ),
            "quota usrquota grpquota noquota": frozenset({"^feature quota"}),
            "barrier nobarrier": frozenset({"^a write cache"}),
            # Documentation/admin-guide/ext4.rst: only for inode tables that mkfs leaves to the kernel.
            "init_itable noinit_itable": frozenset({"^mkfs option lazy_itable_init"}),
            # fs/ext4/ext4_jbd2.h, ext4_should_dioread_nolock
            "dioread_lock dioread_nolock nodioread_nolock": frozenset(
                {"^feature extent", "nodelalloc", "data=journal"}
            ),
            "dax": frozenset({"^a disk with DAX"}),
        }
    )
    stripe_options = ("stride", "stripe_width", "stripe-width")
    no_stripe_options = "-E stride=0,stripe_width=0"  # else mke2fs uses what the device reports (libblkid)
    extended_options: ClassVar[tuple[str, ...]] = ("lazy_itable_init=0",)
    settled_options = ("no_prefetch_block_bitmaps",)
    unsettled_options = ("prefetch_block_bitmaps",)

    def mkfs_argv(self, options: str, device: str, *, discard: bool) -> list[str]:
        """Return ``mkfs.ext4 -F -q -E …``. The study's -E values follow fslab's in the same -E."""
        given = _pairs(options)
        extended = [*self.extended_options, "discard" if discard else "nodiscard"]
        extended += [value for flag, value in given if flag == "-E"]
        rest = [word for flag, value in given if flag != "-E" for word in (flag, value)]
        # On a device below 512 MB, mke2fs.conf would choose blocks of 1 KiB; the other file systems use 4 KiB.
        block = [] if {flag for flag, _ in given} & {"-b", "-T", "-C"} else ["-b", str(BLOCK_BYTES)]
        return [*self.mkfs, "-E", ",".join(extended), *block, *rest, device]

    def made_with(self, options: str) -> Made:
        """Return what mke2fs writes with the study's number, size or density of inodes, its groups and its journal.

        Inode tables that the kernel initialises after the mount are not part of it, nor those of a usage type, which
        /etc/mke2fs.conf describes. A value that mke2fs will refuse counts as the default.
        """
        given = dict(_pairs(options))
        words = {word for flag, value in _pairs(options) if flag in {"-E", "-O"} for word in value.split(",")}
        made = replace(self.made, data_tib_bytes=self._data_tib_bytes(given, words))
        if size := re.fullmatch(r"size=(\d{1,9})", given.get("-J", "")):
            made = replace(made, journal_bytes=int(size[1]) << 20)
        if words & {"^has_journal", "lazy_journal_init", "lazy_journal_init=1"}:
            made = replace(made, journal_bytes=0)
        if words & {"lazy_itable_init", "lazy_itable_init=1"} or "-T" in given:
            return replace(made, zero_tib_bytes=0)
        try:
            inode = parse_size(given.get("-I", str(INODE_BYTES)))
            ratio = parse_size(given.get("-i", str(RATIO_BYTES)))
            count = parse_size(given["-N"]) if "-N" in given else None
        except ValueError:
            return made
        if {"-i", "-N"} & given.keys():
            made = replace(made, zero_shares=())
        if count is None:
            return replace(made, zero_tib_bytes=TIB // max(ratio, 1) * inode)
        return replace(made, zero_tib_bytes=TIB, most_zero_bytes=count * inode)

    def _data_tib_bytes(self, given: Mapping[str, str], words: Collection[str]) -> int:
        """Return the bitmaps and descriptors of groups: smaller blocks or groups are more groups, and without checksums
        mke2fs writes all bitmaps."""
        found = self.made.data_tib_bytes
        with suppress(ValueError):
            found *= _MORE_GROUPS.get(parse_size(given.get("-b", str(BLOCK_BYTES))), 1)
            found = found * GROUP_BLOCKS // max(1, parse_size(given.get("-g", str(GROUP_BLOCKS))))
        return max(found, ALL_BITMAPS_BYTES) if {"^metadata_csum", "^uninit_bg"} & set(words) else found

    feature_flags = ("-O",)
    feature_names: ClassVar[Mapping[str, str]] = {"extents": "extent"}
    # fs/ext4/super.c (mount), inode.c (a file of 2 GiB) and xattr.c (the first attribute); fs/ext2 likewise.
    kernel_features = frozenset({"needs_recovery", "orphan_present", "large_file", "ext_attr"})

    def features_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        return ["dumpe2fs", "-h", device]

    def feature_words(self, output: str) -> frozenset[str]:
        """Return the words of its line ``Filesystem features:``."""
        lines = (line.partition("Filesystem features:")[2].split() for line in output.splitlines())
        return frozenset(word for words in lines for word in words)

    def sizes_made(self, output: str) -> Mapping[str, str]:
        """Return the lines about what /etc/mke2fs.conf sets: ``blocksize``, ``inode_size``, ``inode_ratio``."""
        lines = (line.partition(":") for line in output.splitlines())
        return {
            name.lower().replace(" ", "_"): text.strip() for name, _, text in lines if name in _SIZES_MADE
        }

    def aligned_options(self, stripe: Stripe, options: str) -> str:
        """Return ``-E stride=…,stripe_width=…``, in blocks of the file system."""
        block_bytes = _block_bytes(options)
        stride = stripe.chunk_bytes // block_bytes
        if not stride:
            raise ValueError(
                f"the chunk ({format_size(stripe.chunk_bytes)}) is smaller than a block of the file system"
            )
        return f"-E stride={stride},stripe_width={stride * stripe.data_disks}"

    def grow_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        """Return ``resize2fs``, which also works on mounted file systems."""
        return ["resize2fs", device]

    def shrink_argv(self, device: str, target: str, size_bytes: int) -> list[str]:  # noqa: ARG002
        """Return ``resize2fs DEVICE SIZE``. The kernel decides whether it is possible."""
        return ["resize2fs", device, f"{size_bytes >> 10}K"]

    def promises(self, mount_options: Collection[str], superblock: bytes) -> Promises:
        """Return the promises of ext4.rst, or of the source code for what ext4.rst does not describe.

        Without a journal, only the names of a synced file are kept. With ``noload`` none is used, though there is one.
        """
        shown = set(mount_options)
        has_journal = bool(superblock[FEATURE_COMPAT] & HAS_JOURNAL)
        journal = has_journal and not {"noload", "norecovery"} & shown
        ordered = journal and "data=writeback" not in shown
        replaced = ordered and not {"noauto_da_alloc", "auto_da_alloc=0"} & shown
        unsafe = bool({"nobarrier", "barrier=0"} & shown)  # ext4_fsync_nojournal reads it, too
        return Promises(
            consistent=Promise(given=journal, source=_JOURNAL if journal else _NO_JOURNAL),
            names=Promise(given=True, source=_NAMES),
            attributes=Promise(given=journal, source=_ATTRIBUTES if journal else _NO_ATTRIBUTES),
            directories=Promise(given=journal, source=_JOURNAL if journal else _NO_CHILDREN),
            removal=Promise(given=journal, source=_REMOVAL if journal else _NO_JOURNAL),
            rename=Promise(given=journal, source=_JOURNAL if journal else _NO_JOURNAL),
            replace=Promise(given=replaced, source="ext4.rst, auto_da_alloc" if journal else _NO_JOURNAL),
            unexposed=Promise(given=ordered, source="ext4.rst, data=" if journal else _NO_JOURNAL),
            at_once=at_once(shown if journal else ()),
            caution=_NO_BARRIER if unsafe else None,
        )

    def has_other_devices(self, mount_options: Collection[str], superblock: bytes) -> bool:  # noqa: ARG002
        """Return whether it has a journal in no inode of its own: the journal is a device."""
        inode = superblock[JOURNAL_INODE : JOURNAL_INODE + 4]
        return bool(superblock[FEATURE_COMPAT] & HAS_JOURNAL) and not any(inode)

    def ends_the_machine(self, mount_options: Collection[str], superblock: bytes) -> bool:
        """Return whether its superblock or an option says ``errors=panic``."""
        by_default = superblock[MOUNT_OPTIONS:][:MOUNT_OPTIONS_BYTES].split(b"\0")[0].decode("latin-1")
        kept = not any(option.startswith("errors=") for option in mount_options)
        panics = kept and int.from_bytes(superblock[ERRORS : ERRORS + 2], "little") == PANIC
        return panics or super().ends_the_machine([*mount_options, by_default if kept else ""], superblock)

    def check_argv(self, image: str) -> list[str]:
        return ["e2fsck", "-f", "-n", image]

    def repair_argv(self, image: str) -> list[str]:
        return ["e2fsck", "-f", "-y", image]

    def full_repair_argv(self, image: str) -> list[str]:
        """Return ``e2fsck -f -y``, which replays the journal first."""
        return self.repair_argv(image)


class JournalledExt(ExtFileSystem):
    """Base of ext3 and ext4."""

    extended_options = ("lazy_itable_init=0", "lazy_journal_init=0")
    mount_options: ClassVar[Mapping[str, str]] = {**EXT2_MOUNT_OPTIONS, **JOURNAL_MOUNT_OPTIONS}

    def external_journal(self, device: str, size_bytes: int, options: str) -> JournalElsewhere:
        """Return the command that makes a journal on a device, with blocks as in the file system, and the options to
        use it. ``journal_path``: the number of the device, which the superblock has, can change between trials."""
        block_bytes = _block_bytes(options)
        make = (f"mkfs.{self.name}", "-F", "-q", "-O", "journal_dev", "-b", str(block_bytes), device,
                str(size_bytes // block_bytes))  # fmt: skip
        return JournalElsewhere(mkfs=f"-J device={device}", mount=f"journal_path={device}", make=make)


def _pairs(options: str) -> list[tuple[str, str]]:
    """Return each flag with its value: the rest of the word or, if there is none, the next word.

    All allowed flags have a value. The next word may look like a flag.
    """
    words = iter(shlex.split(options))
    return [(word[:2], word[2:] or next(words, "")) for word in words]


def _block_bytes(options: str) -> int:
    """Return the block size that mke2fs will use. ValueError if a usage type or bigalloc decides it."""
    given = dict(_pairs(options))
    if "-b" in given:
        return parse_size(given["-b"].removeprefix("-"))
    if {"-T", "-C"} & set(given):
        raise ValueError("the stride is in blocks: with -T or -C, give the block size too, such as -b 4096")
    return BLOCK_BYTES


def tool(name: str) -> Tool:
    """Return the mkfs of one member of the family. All belong to e2fsprogs."""
    return Tool(program=f"mkfs.{name}", package="e2fsprogs", version_argv=("-V",))
