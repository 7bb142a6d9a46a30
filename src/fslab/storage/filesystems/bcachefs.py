"""bcachefs: copy on write, checksums, several devices and tiers. bcachefs(8), "Principles of Operation".

It was part of Linux from 6.7 to 6.17. Since then it is a separate module (bcachefs-dkms).
"""

from fslab.storage.filesystems import FileSystem, Kernels, naming, options
from fslab.system.tools import Tool

CHECKSUMS = "none|crc32c|crc64|xxhash"
COMPRESSION = "none|lz4|gzip|zstd"
VALUES = (
    "block_size", "btree_node_size", "metadata_checksum", "data_checksum", "compression", "background_compression",
    "str_hash", "metadata_replicas", "data_replicas", "bucket", "bucket_size", "version",
)  # fmt: skip


class Bcachefs(FileSystem):
    """Copy on write with checksums, compression, encryption and snapshots."""

    summary = "copy on write, checksums, compression, snapshots, tiers"
    tools = (Tool(program="bcachefs", package="bcachefs-tools", version_argv=("version",), component=None),)
    mkfs = ("bcachefs", "format", "--force", "--quiet")
    mkfs_discards = ("--discard",)
    mount_type = "bcachefs"
    mount_flags = ("-i",)  # mount.bcachefs(8) would search all disks and can ask for a passphrase
    kernels = Kernels(since=(6, 7), last=(6, 17))
    log_prefixes = ("bcachefs",)
    min_size_bytes = 64 << 20
    mkfs_flags = {
        **{f"--{name}": "value" for name in VALUES},
        **naming("-L -U --fs_label --uuid"),
        **options("--encrypted --no_passphrase"),
    }
    mount_options = options(
        f"acl background_compression={COMPRESSION} compression={COMPRESSION} data_checksum={CHECKSUMS} "
        f"metadata_checksum={CHECKSUMS} discard nodiscard errors=continue|ro|fix_safe fsck "
        "inodes_32bit nocow str_hash=crc32c|crc64|siphash verbose wide_macs inline_data "
        "journal_flush_delay=int journal_flush_disabled journal_reclaim_delay=int shard_inode_numbers"
    )
