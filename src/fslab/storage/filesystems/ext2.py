"""ext2: the ext family without a journal. mke2fs(8), Documentation/filesystems/ext2.rst."""

from dataclasses import replace

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
