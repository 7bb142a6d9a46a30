"""JFS: journalled metadata, extents; from AIX and OS/2. mkfs.jfs(8), Documentation/admin-guide/jfs.rst."""

from fslab.filesystem_abilities import Ability, Limits
from fslab.storage.filesystems import FileSystem, Made, OptionSwitch, naming, options, valued
from fslab.system.tools import Tool


class Jfs(FileSystem):
    """Journalled metadata, extents, B+ trees."""

    summary = "journalled metadata, extents; from AIX"
    tools = (Tool(program="mkfs.jfs", package="jfsutils", version_argv=("-V",)),)
    mkfs = ("mkfs.jfs", "-q")  # never discards
    mount_type = "jfs"
    log_prefixes = ("JFS", "jfs")
    made = Made(data_bytes=130 << 20, data_tib_bytes=128 << 20)  # its log, at most 128 MiB, and a map
    min_size_bytes = 16 << 20  # "Partition must be at least 16 megabytes"
    own_bytes = 1 << 20  # mostly its log: 1.3 MiB of 16, 4.5 of 1 GiB
    limits = Limits(
        lacks={
            Ability.FALLOCATE: "jfs has no fallocate(2)",
            Ability.REFLINK: "no two files share blocks",
        }
    )
    switches = {"quotas": OptionSwitch(mount="usrquota")}
    mkfs_flags = {
        **valued("-s"),
        **naming("-L"),
        **options("-O"),
    }
    mount_options = options(
        "iocharset=any integrity nointegrity errors=continue|remount-ro quota noquota usrquota "
        "grpquota uid=int gid=int umask=any discard=int? nodiscard"
    )

    # fs/jfs/super.c, jfs_show_options; seen with Linux 6.1.
    listed_as = {"quota": "usrquota"}
    unlisted = frozenset({"errors=remount-ro", "integrity", "nodiscard", "noquota"})

    def grow_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        """Return a remount with ``resize``, which grows it to the size of the device (jfs.rst)."""
        return ["mount", "-o", "remount,resize", target]
