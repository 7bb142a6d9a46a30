"""btrfs: copy on write, checksums, subvolumes. mkfs.btrfs(8), btrfs(5)."""

import re
from collections.abc import Collection

from fslab.storage.crash_promises import Promise, Promises, kept
from fslab.storage.filesystems import COMMANDS, FileSystem, naming, of_each, options, valued
from fslab.system.tools import Tool

_NO_BARRIER = "btrfs(5), nobarrier: on a device with a volatile cache it will lead to corruption"
_DEVICES = (64 << 10) + 136  # include/uapi/linux/btrfs_tree.h: num_devices of struct btrfs_super_block
COMPRESSION = "zlib|lzo|zstd|no|none"


class Btrfs(FileSystem):
    """Copy on write with checksums for data and metadata."""

    summary = "copy on write, checksums, compression, snapshots"
    tools = (Tool(program="mkfs.btrfs", package="btrfs-progs"),)
    mkfs = ("mkfs.btrfs", "-f", "-q")
    mkfs_keeps = ("-K",)  # do not discard
    mount_type = "btrfs"
    log_prefixes = ("BTRFS", "btrfs")
    unfilled_bytes = (
        76 << 20
    )  # chunks of metadata and of the system, twice; seen: 76 MiB of 128 MiB, 86 of 512
    own_bytes = unfilled_bytes
    min_size_bytes = 128 << 20  # for less, mkfs.btrfs refuses separate data and metadata with DUP
    # On a small volume, reservations of metadata space force early commits. Measured with 10,000 small files: on 1 GB,
    # 3.7 bytes written to the device per byte of data, and 168 flushes; on 6 GB, 1.4 bytes and 10 flushes.
    fair_size_bytes = 16 << 30
    mkfs_flags = {
        **valued(
            "-d --data -m --metadata -n --nodesize -s --sectorsize -O --features -R "
            "--runtime-features --csum --checksum"
        ),
        **naming("-L --label -U --uuid"),
        **options("-M --mixed"),
    }
    # mkfs.btrfs(8), "FILESYSTEM FEATURES".
    mkfs_words = {
        "-O": "block-group-tree extref free-space-tree mixed-bg no-holes quota raid-stripe-tree raid1c34 "
        "skinny-metadata squota zoned",
    }
    mount_options = options(
        "acl noacl autodefrag noautodefrag barrier nobarrier clear_cache commit=int "
        f"compress={COMPRESSION}? compress-force={COMPRESSION}? datacow nodatacow datasum nodatasum "
        "degraded discard=sync|async? nodiscard enospc_debug noenospc_debug flushoncommit "
        "noflushoncommit fragment=data|metadata|all max_inline=size metadata_ratio=int "
        "rescan_uuid_tree rescue=any skip_balance space_cache=v1|v2? nospace_cache ssd ssd_spread "
        "nossd nossd_spread thread_pool=int treelog notreelog user_subvol_rm_allowed"
    )

    # btrfs(5), "DEPRECATED MOUNT OPTIONS", and fs/btrfs/super.c.
    removed_options = of_each(
        {
            "inode_cache noinode_cache": "removed in Linux 5.11: btrfs does not reuse inode numbers any more",
            "recovery usebackuproot": "replaced by 'rescue=usebackuproot' in Linux 5.9; a new file system needs "
            "neither",
            "nologreplay norecovery": "replaced by 'rescue=nologreplay' in Linux 5.9, which needs a read-only mount",
            "check_int check_int_data check_int_print_mask": "a debugging aid that kernels of distributions lack, "
            "removed in Linux 6.7",
            "alloc_start": "a debugging aid, without effect since Linux 4.13",
            "subvolrootid": "without effect since Linux 3.2; 'subvolid' replaced it",
            "subvol subvolid": "a new btrfs has only its top-level subvolume, which is mounted",
        }
    )

    # fs/btrfs/super.c, btrfs_show_options; seen with Linux 6.1 and 6.18.
    listed_as = {
        "discard": "discard=", "discard=sync": "discard=", "space_cache": "space_cache=",
        "space_cache=v1": "space_cache=", "compress": "compress=zlib", "compress-force": "compress-force=zlib",
    }  # fmt: skip
    unlisted = frozenset(
        {
            "acl", "barrier", "commit=30", "compress=no", "compress=none", "compress-force=no", "compress-force=none",
            "datacow", "datasum", "max_inline=2048", "metadata_ratio=0", "noautodefrag", "nodiscard",
            "noenospc_debug", "noflushoncommit", "nospace_cache", "nossd_spread", "treelog",
        }
    )  # fmt: skip
    unshown = frozenset({"clear_cache", "thread_pool"})
    # fs/btrfs/inode.c, inode_can_compress and inode_need_compress; seen with Linux 6.18. btrfs(5): the first two.
    overruled = of_each(
        {
            "degraded": frozenset({"^a missing disk"}),
            "skip_balance": frozenset({f"^an interrupted balance|{COMMANDS}"}),
            "compress compress-force": frozenset({"nodatasum", "+C", "+m"}),
            "nobarrier": frozenset({"^a write cache"}),
        }
    )

    def mkfs_mistakes(self, options: str) -> list[str]:
        """Add ``list-all``: with it mkfs.btrfs makes nothing and succeeds, and what was there before is mounted."""
        if re.search(r"\blist-all\b", options):
            return ["with 'list-all', mkfs.btrfs makes no file system: leave it out"]
        return super().mkfs_mistakes(options)

    feature_flags = ("-O", "--features", "-R", "--runtime-features")
    feature_names = {"extref": "extended-iref", "mixed-bg": "mixed-groups", "quota": ""}
    # fs/btrfs/disk-io.c, open_ctree, and verity.c. The device has them only after the next commit.
    kernel_features = frozenset(
        {"big-metadata", "compress-lzo", "compress-zstd", "default-subvol", "free-space-tree-valid", "verity"}
    )

    def features_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        return ["btrfs", "inspect-internal", "dump-super", device]

    def feature_words(self, output: str) -> frozenset[str]:
        """Return its flags, such as ``NO_HOLES``, as mkfs.btrfs writes them: ``no-holes``."""
        return frozenset(
            word.lower().replace("_", "-") for word in re.findall(r"[(|]\s*([A-Z][A-Z0-9_]+)", output)
        )

    def grow_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        return ["btrfs", "filesystem", "resize", "max", target]

    def shrink_argv(self, device: str, target: str, size_bytes: int) -> list[str]:  # noqa: ARG002
        """Return ``btrfs filesystem resize SIZE``, which moves data that lies beyond the new end."""
        return ["btrfs", "filesystem", "resize", str(size_bytes), target]

    def promises(self, mount_options: Collection[str], superblock: bytes) -> Promises:  # noqa: ARG002
        """Return the promises of copy-on-write trees and the fsync log.

        Since Linux 3.17, a rename without fsync does not keep the contents of the new file.
        """
        unsafe = "nobarrier" in set(mount_options)
        tree = kept("btrfs(5), filesystem design: transactions of copy-on-write trees")
        log = "fs/btrfs/tree-log.c"
        return Promises(
            consistent=tree,
            names=kept(f"{log}: btrfs_log_inode_parent logs new names and renames"),
            attributes=kept(f"{log}: btrfs_log_all_xattrs; fstests generic/066, generic/489"),
            directories=kept(f"{log}: log_new_dir_dentries logs the new inodes too"),
            removal=kept(
                "commit 5e85262e542d (btrfs: fix fsync of files with no hard links not persisting deletion); "
                "fstests generic/764, 792"
            ),
            rename=tree,
            replace=Promise(
                given=False,
                source="commit 8d875f95da43 (btrfs: disable strict file flushes for renames and truncates)",
            ),
            unexposed=kept("fs/btrfs/ordered-data.c: extents appear when their data is written"),
            caution=_NO_BARRIER if unsafe else None,
        )

    def has_other_devices(self, mount_options: Collection[str], superblock: bytes) -> bool:  # noqa: ARG002
        """Return whether the superblock counts more than one device."""
        return int.from_bytes(superblock[_DEVICES : _DEVICES + 8], "little") > 1

    def check_argv(self, image: str) -> list[str]:
        """Return ``btrfs check --readonly``. ``--force`` is needed because the original can be mounted."""
        return ["btrfs", "check", "--readonly", "--force", image]

    def repair_argv(self, image: str) -> list[str]:
        """Return ``btrfs rescue zero-log``, which discards a log that cannot be replayed.

        Not ``btrfs check --repair``: its manual advises against it.
        """
        return ["btrfs", "rescue", "zero-log", image]
