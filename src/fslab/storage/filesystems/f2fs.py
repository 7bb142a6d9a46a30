"""f2fs: log-structured, for flash. mkfs.f2fs(8), Documentation/filesystems/f2fs.rst."""

from pathlib import PurePath

from fslab.filesystem_abilities import Ability, Limits
from fslab.storage.filesystems import FileSystem, Kernels, Made, OptionSwitch, naming, options, valued
from fslab.system.tools import Tool


class F2fs(FileSystem):
    """Log-structured with several active logs, designed for flash with a translation layer."""

    summary = "log-structured, made for flash"
    tools = (Tool(program="mkfs.f2fs", package="f2fs-tools", version_argv=("-V",)),)
    mkfs = ("mkfs.f2fs", "-f")  # with -q it does not say why it fails
    mkfs_discards, mkfs_keeps = ("-t", "1"), ("-t", "0")
    mount_type = "f2fs"  # no grow_argv: resize.f2fs 1.15 resizes unmounted file systems only
    kernels = Kernels(since=(3, 8))
    log_prefixes = ("F2FS-fs", "f2fs")
    made = Made(data_bytes=64 << 20, zero_tib_bytes=120 << 20)
    min_size_bytes = 64 << 20  # mkfs.f2fs 1.15 refuses 48 MiB
    own_bytes = 48 << 20  # kept for its cleaner: 48 MiB of 64, 66 of 128, 96 of 320, 156 of 1 GiB
    limits = Limits(
        lacks={Ability.REFLINK: "no two files share blocks"},
        # f2fs.rst, "Index Structure": two direct nodes, two indirect, one double indirect. The pointers in the inode
        # itself are not counted.
        largest_file_bytes=(2 * 1018 + 2 * 1018**2 + 1018**3) * 4096,
    )
    switches = {
        "quotas": OptionSwitch(mkfs="-O extra_attr,quota"),
        "verity": OptionSwitch(mkfs="-O extra_attr,verity"),
        "encryption": OptionSwitch(mkfs="-O encrypt"),
        "case-folding": OptionSwitch(mkfs="-O casefold -C utf8"),
        "compression": OptionSwitch(mkfs="-O extra_attr,compression"),
    }
    mkfs_flags = {
        **valued("-a -C -e -E -g -o -O -R -s -T -w -z"),
        **naming("-l -U"),
        **options("-i"),
    }
    # mkfs.f2fs(8), and f2fs-tools' f2fs_fs.h.
    mkfs_words = {
        "-O": "casefold compression encrypt extra_attr flexible_inline_xattr inode_checksum inode_crtime lost_found "
        "project_quota sb_checksum verity",
    }
    mount_options = options(
        "acl noacl active_logs=2|4|6 age_extent_cache alloc_mode=default|reuse atgc "
        "background_gc=on|off|sync barrier nobarrier checkpoint_merge nocheckpoint_merge "
        "checkpoint=enable compress_algorithm=lzo|lz4|zstd|lzo-rle compress_cache "
        "compress_chksum compress_extension=any compress_log_size=int compress_mode=fs|user "
        "nocompress_extension=any data_flush disable_ext_identify disable_roll_forward discard "
        "nodiscard discard_unit=block|segment|section errors=continue|remount-ro extent_cache "
        "noextent_cache fastboot flush_merge noflush_merge fsync_mode=posix|strict|nobarrier gc_merge "
        "nogc_merge heap no_heap inline_data noinline_data inline_dentry noinline_dentry inline_xattr "
        "noinline_xattr inline_xattr_size=int inlinecrypt memory=normal|low "
        "mode=adaptive|lfs|fragment norecovery reserve_root=int resgid=int resuid=int "
        "lookup_mode=perf|compat|auto user_xattr nouser_xattr quota noquota usrquota grpquota "
        "prjquota"
    )

    removed_options = {
        "checkpoint=disable": "an unmount, as before a cold run, would delete all that was written"
    }

    # fs/f2fs/super.c, f2fs_show_options; seen with Linux 6.1.
    listed_as = {"quota": "usrquota"}
    unlisted = frozenset({"checkpoint=enable", "noflush_merge", "nogc_merge", "noquota"})

    feature_flags = ("-O",)
    feature_names = {"encrypt": "encryption", "project_quota": "projquota", "quota": "quota_ino"}

    def features_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        """Return a command that prints the kernel's own list: dump.f2fs refuses a mounted file system."""
        return ["cat", f"/sys/fs/f2fs/{PurePath(device).name}/features"]

    def feature_words(self, output: str) -> frozenset[str]:
        return frozenset(output.replace(",", " ").split())
