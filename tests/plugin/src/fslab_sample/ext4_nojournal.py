"""ext4 without a journal, as a file system of its own. mke2fs(8), ``-O ^has_journal``."""

from __future__ import annotations

from fslab.storage.filesystems import FileSystem
from fslab.system.tools import Tool


class Ext4NoJournal(FileSystem):
    """What ext4 costs when nothing is written twice."""

    summary = "ext4 without a journal"
    tools = (Tool(program="mkfs.ext4", package="e2fsprogs", version_argv=("-V",)),)
    mkfs = ("mkfs.ext4", "-q", "-F", "-O", "^has_journal")
    mkfs_discards = ("-E", "lazy_itable_init=0,discard")
    mkfs_keeps = ("-E", "lazy_itable_init=0,nodiscard")
    mount_type = "ext4"
    min_size_bytes = 8 << 20
    mount_options = {"delalloc": "", "nodelalloc": "", "commit": "int"}
    mkfs_flags = {"-b": "value", "-i": "value"}
