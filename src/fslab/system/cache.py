"""The page cache: dropping it, wholly as root or file by file for everybody."""

from __future__ import annotations

import os
from pathlib import Path

DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def drop_all() -> None:
    """Drop clean page cache, dentries and inodes of the whole machine (Documentation/admin-guide/sysctl/vm)."""
    DROP_CACHES.write_text("3")


def drop_tree(directory: Path) -> None:
    """Drop the clean pages of every regular file below ``directory``: posix_fadvise(2) DONTNEED.

    Works without root. Dentries and inodes stay cached. Symbolic links are not followed.
    """
    for path, _, names in os.walk(directory):
        for name in names:
            descriptor = os.open(Path(path) / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
