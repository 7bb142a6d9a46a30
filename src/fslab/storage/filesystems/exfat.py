"""exFAT: FAT for large memory cards. mkfs.exfat(8), fs/exfat/super.c for the mount options."""

from fslab.filesystem_abilities import Ability, Limits
from fslab.storage.filesystems import FileSystem, Kernels, _foreign, naming, options, valued
from fslab.system.tools import Tool


class Exfat(FileSystem):
    """A table of clusters with a bitmap; no journal, no owners."""

    summary = "FAT for large memory cards: no journal, no owners"
    tools = (Tool(program="mkfs.exfat", package="exfatprogs", version_argv=("-V",)),)
    mkfs = ("mkfs.exfat",)  # never discards
    mount_type = "exfat"
    mount_flags = ("-i",)  # a helper named mount.exfat would mount it through FUSE
    kernels = Kernels(since=(5, 7))
    log_prefixes = ("exFAT-fs", "exfat")
    min_size_bytes = 8 << 20
    limits = Limits(lacks={**_foreign.FAT_LACKS, Ability.FALLOCATE: "it has no unwritten clusters"})
    mkfs_flags = {
        **valued("-c --cluster-size -b --boundary-align"),
        **naming("-L --volume-label"),
        **options("--pack-bitmap"),
    }
    mount_options = {
        **_foreign.MASK_OPTIONS,
        **options(
            "allow_utime=any discard errors=continue|remount-ro keep_last_dots sys_tz time_offset=any "
            "zero_size_dir"
        ),
    }
    removed_options = dict.fromkeys(
        ("utf8", "debug", "namecase", "codepage"),
        "without effect (an option of the driver before Linux 5.7); 'iocharset' chooses the character set",
    )
