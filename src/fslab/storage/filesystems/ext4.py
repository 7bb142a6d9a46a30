"""ext4: extents, delayed allocation, journal. mke2fs(8), Documentation/admin-guide/ext4.rst."""

from dataclasses import replace

from fslab.abilities import Limits
from fslab.storage.filesystems import JournalElsewhere, OptionSwitch, _ext


class Ext4(_ext.ExtFileSystem):
    """Journalled, extent-based; the default of most distributions."""

    summary = "journalled, extents, delayed allocation"
    mount_type = "ext4"
    limits = Limits(lacks=_ext.NO_REFLINK, largest_file_bytes=16 << 40)
    switches = {
        **_ext.ExtFileSystem.switches,
        "verity": OptionSwitch(mkfs="-O verity"),
        "encryption": OptionSwitch(mkfs="-O encrypt"),
        "case-folding": OptionSwitch(mkfs="-O casefold"),
    }
    tools = (_ext.tool("ext4"),)
    made = replace(_ext.ExtFileSystem.made, data_tib_bytes=14 << 20)  # with empty groups
    extended_options = ("lazy_itable_init=0", "lazy_journal_init=0")
    mount_options = {**_ext.EXT2_MOUNT_OPTIONS, **_ext.JOURNAL_MOUNT_OPTIONS, **_ext.EXT4_MOUNT_OPTIONS}

    def external_journal(self, device: str, size_bytes: int, options: str) -> JournalElsewhere:
        """Return ``-J device=…`` and ``journal_path``, with the command that makes the journal."""
        return _ext.journal_device(self.name, device, size_bytes, options)
