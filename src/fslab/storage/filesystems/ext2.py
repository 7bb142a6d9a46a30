"""ext2: the ext family without a journal. mke2fs(8), Documentation/filesystems/ext2.rst."""

from collections.abc import Collection
from dataclasses import replace

from fslab.storage.crash_promises import Promise, Promises
from fslab.storage.filesystems import _ext


class Ext2(_ext.ExtFileSystem):
    """No journal, no extents: block maps and bitmaps only."""

    summary = "no journal, block maps"
    mount_type = "ext2"
    limits = _ext.BLOCK_MAPPED
    tools = (_ext.tool("ext2"),)
    mkfs = ("mkfs.ext2", "-F", "-q")
    made = replace(_ext.ExtFileSystem.made, journal_bytes=0)
    mount_options = _ext.EXT2_MOUNT_OPTIONS

    def promises(self, mount_options: Collection[str], superblock: bytes) -> Promises:
        """Return those of ext4 without a journal, but names: some kernels have a driver of its own for ext2."""
        names = Promise(
            given=False, source="fs/ext2/file.c, ext2_fsync: writes the file, and not its directory"
        )
        return replace(super().promises(mount_options, superblock), names=names)
