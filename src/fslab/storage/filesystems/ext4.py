"""ext4: extents, delayed allocation, journal. mke2fs(8), Documentation/admin-guide/ext4.rst."""

from dataclasses import replace

from fslab.filesystem_abilities import Limits
from fslab.storage.filesystems import OptionSwitch, _ext, of_each


class Ext4(_ext.JournalledExt):
    """Journalled, extent-based; the default of most distributions."""

    summary = "journalled, extents, delayed allocation"
    mount_type = "ext4"
    limits = Limits(lacks=_ext.NO_REFLINK, largest_file_bytes=16 << 40)
    switches = {
        "quotas": OptionSwitch(mkfs="-O quota"),
        "verity": OptionSwitch(mkfs="-O verity"),
        "encryption": OptionSwitch(mkfs="-O encrypt"),
        "case-folding": OptionSwitch(mkfs="-O casefold"),
    }
    tools = (_ext.tool("ext4"),)
    mkfs = ("mkfs.ext4", "-F", "-q")
    # fs/ext4/inode.c, ext4_alloc_da_blocks: there is nothing to allocate. Seen with Linux 6.18.
    overruled = {
        **_ext.ExtFileSystem.overruled,
        **of_each(
            {
                "auto_da_alloc noauto_da_alloc": frozenset({"nodelalloc"}),
            }
        ),
    }
    made = replace(_ext.ExtFileSystem.made, data_tib_bytes=17 << 20)  # with empty groups
    mount_options = {**_ext.JournalledExt.mount_options, **_ext.EXT4_MOUNT_OPTIONS}
