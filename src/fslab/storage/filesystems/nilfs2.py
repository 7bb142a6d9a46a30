"""NILFS2: log-structured with a checkpoint every few seconds. mkfs.nilfs2(8), Documentation/filesystems/nilfs2.rst.

fslab mounts it without its helper, and so without its cleaner. The cleaner is a daemon that reclaims space at
unpredictable times and would disturb the measurement. Without it, space is not freed until the next mkfs, so a workload
needs space for everything that it writes, including what it overwrites.
"""

from fslab.filesystem_abilities import Ability, Limits
from fslab.storage.filesystems import FileSystem, naming, of_each, options, valued
from fslab.system.tools import Tool


class Nilfs2(FileSystem):
    """Log-structured with continuous snapshots, without its cleaner."""

    summary = "log-structured, continuous snapshots; mounted without its cleaner"
    tools = (Tool(program="mkfs.nilfs2", package="nilfs-tools", version_argv=("-V",)),)
    mkfs = ("mkfs.nilfs2", "-f", "-q")
    mkfs_keeps = ("-K",)  # do not discard
    mount_type = "nilfs2"
    mount_flags = ("-i",)  # mount.nilfs2(8) would start the cleaner
    log_prefixes = ("NILFS", "nilfs2")
    min_size_bytes = 134_221_824  # the minimum that mkfs.nilfs2 2.2.9 reports for its default segments
    own_bytes = 80 << 20  # segments kept for its cleaner: 81 MiB of 129, 88 of 160 MiB to 1 GiB
    notice = "mounted without its cleaner: all that is written needs room, also what is overwritten or deleted later"
    limits = Limits(
        lacks={
            Ability.DIRECT_WRITES: "nilfs2 sends them through the page cache",  # fs/nilfs2/inode.c, nilfs_direct_IO
            Ability.FALLOCATE: "nilfs2 has no fallocate(2)",
            Ability.XATTR: "nilfs2 stores none",
            Ability.REFLINK: "no two files share blocks",
        }
    )
    mkfs_flags = valued("-b -B -m -O") | naming("-L")
    mount_options = options(
        "barrier nobarrier errors=continue|remount-ro order=relaxed|strict norecovery discard nodiscard"
    )
    removed_options = of_each(
        {
            "cp": "it mounts a snapshot, which is read-only, and a new file system has none; leave it out",
            "gc nogc pp gcpid": "an option of mount.nilfs2(8) for its cleaner, which fslab does not start",
        }
    )

    # fs/nilfs2/super.c, nilfs_show_options; seen with Linux 6.1.
    unlisted = frozenset({"barrier", "errors=remount-ro", "nodiscard", "order=relaxed"})

    def grow_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        """Return ``nilfs-resize``, which works on mounted file systems."""
        return ["nilfs-resize", "-y", device]

    def shrink_argv(self, device: str, target: str, size_bytes: int) -> list[str]:  # noqa: ARG002
        return ["nilfs-resize", "-y", device, str(size_bytes)]
