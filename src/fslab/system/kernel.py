"""The running kernel: its version, and its file systems, built in or loadable."""

import platform
from pathlib import Path

from fslab.system import modules, sysfs

FILESYSTEMS = Path("/proc/filesystems")


def known_filesystems() -> frozenset[str]:
    """Return the file systems that are built into the kernel or loaded now (proc(5))."""
    lines = (line.split() for line in (sysfs.text(FILESYSTEMS) or "").splitlines())
    return frozenset(words[-1] for words in lines if words)


def has_filesystem(mount_type: str, *, load: bool = True) -> bool:
    """Return whether the kernel has a file system or a module for it. ``load``: load that module (needs root)."""
    if mount_type in known_filesystems():
        return True
    found = modules.available(f"fs-{mount_type}", load=load)
    return found and (not load or mount_type in known_filesystems())


def release() -> str:
    """Return the running kernel's version, such as ``6.12.41-amd64``."""
    return platform.uname().release
