"""ZFS: pooled storage, copy on write, checksums. zpool-create(8), zfsprops(7).

fslab does not create ZFS pools. A pool stays imported and cached after umount until it is exported, so a cold cache,
a crash and a second campaign would each need steps that no other file system needs (create, import, export, and their
undo). The command lines here are for the plan, and for a later implementation of these steps.
"""

import shlex
from pathlib import PurePath

from fslab.storage.filesystems import FileSystem, Kernels
from fslab.system.tools import Tool


class Zfs(FileSystem):
    """One pool on one device, mounted as a legacy file system."""

    summary = "pooled storage, copy on write, checksums; fslab creates no pools"
    tools = (Tool(program="zpool", package="zfsutils-linux", version_argv=("version",), component="contrib"),)
    mount_type = "zfs"
    kernels = Kernels(outside="OpenZFS (zfs-dkms of Debian's contrib)")
    min_size_bytes = 64 << 20  # zpool-create(8): the smallest device
    refusal = (
        "fslab creates no ZFS pools (zpool); create one yourself and measure a directory on it, with a medium of type "
        "'directory'"
    )
    mkfs_flags = {"-o": "value", "-O": "value"}
    mount_options = {}
    # zfsprops(7)
    removed_options = dict.fromkeys(
        ("atime", "compress", "compression", "dedup", "logbias", "recordsize", "sync", "xattr"),
        "ZFS has properties instead of mount options (zfs set)",
    )

    def mkfs_argv(self, options: str, device: str, *, discard: bool) -> list[str]:  # noqa: ARG002
        """Return ``zpool create`` without a cache file, so that the pool is not imported at boot. It never discards."""
        own = ["-o", "cachefile=none", "-O", "mountpoint=legacy"]
        return ["zpool", "create", "-f", *own, *shlex.split(options), pool(device), device]

    def mount_argv(self, options: str, device: str, target: str) -> list[str]:
        """Return ``mount -t zfs``, with the pool's name instead of the device."""
        return ["mount", "-t", self.mount_type, "-o", options, pool(device), target]


def pool(device: str) -> str:
    """Return the name of the pool on a device."""
    return f"fslab-{PurePath(device).name}"
