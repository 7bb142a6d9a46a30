"""ext4 without a journal, as a file system of its own. mke2fs(8), ``-O ^has_journal``."""

from __future__ import annotations

import shlex

from fslab.storage.filesystems import FileSystem
from fslab.system.tools import Tool


class Ext4NoJournal(FileSystem):
    """What ext4 costs when nothing is written twice."""

    summary = "ext4 without a journal"
    tools = (Tool(program="mkfs.ext4", package="e2fsprogs", version_argv=("-V",)),)
    mount_type = "ext4"
    min_size_bytes = 8 << 20
    mount_options = {"delalloc": "", "nodelalloc": "", "commit": "int"}
    mkfs_flags = {"-b": "value", "-i": "value"}

    def mkfs_argv(self, options: str, device: str, *, discard: bool) -> list[str]:
        extended = f"lazy_itable_init=0,{'discard' if discard else 'nodiscard'}"
        return ["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", extended, *shlex.split(options), device]
