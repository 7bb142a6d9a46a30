"""ext4: extents, delayed allocation, journal. mke2fs(8), Documentation/admin-guide/ext4.rst."""

from fslab.storage.filesystems import _ext


class Ext4(_ext.ExtFileSystem):
    """Journalled, extent-based; the default of most distributions."""

    summary = "journalled, extents, delayed allocation"
    mount_type = "ext4"
    tools = (_ext.tool("ext4"),)
    extended_options = ("lazy_itable_init=0", "lazy_journal_init=0")
    mount_options = {**_ext.EXT2_MOUNT_OPTIONS, **_ext.JOURNAL_MOUNT_OPTIONS, **_ext.EXT4_MOUNT_OPTIONS}
