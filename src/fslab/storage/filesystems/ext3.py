"""ext3: ext2 with a journal (jbd2). mke2fs(8), Documentation/filesystems/ext3.rst."""

from fslab.storage.filesystems import _ext


class Ext3(_ext.JournalledExt):
    """A journal, but block maps instead of extents, and no delayed allocation."""

    summary = "ext2 with a journal; served by the ext4 driver"
    mount_type = "ext3"
    limits = _ext.BLOCK_MAPPED
    tools = (_ext.tool("ext3"),)
    mkfs = ("mkfs.ext3", "-F", "-q")
