"""ext3: ext2 with a journal (jbd2). mke2fs(8), Documentation/filesystems/ext3.rst."""

from fslab.storage.filesystems import JournalElsewhere, _ext


class Ext3(_ext.ExtFileSystem):
    """A journal, but block maps instead of extents, and no delayed allocation."""

    summary = "ext2 with a journal; served by the ext4 driver"
    mount_type = "ext3"
    limits = _ext.BLOCK_MAPPED
    tools = (_ext.tool("ext3"),)
    extended_options = ("lazy_itable_init=0", "lazy_journal_init=0")
    mount_options = {**_ext.EXT2_MOUNT_OPTIONS, **_ext.JOURNAL_MOUNT_OPTIONS}

    def external_journal(self, device: str, size_bytes: int, options: str) -> JournalElsewhere:
        """Return ``-J device=…`` and ``journal_path``, with the command that makes the journal."""
        return _ext.journal_device(self.name, device, size_bytes, options)
