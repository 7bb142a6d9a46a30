"""ZFS: pooled storage, copy on write, checksums. zpool-create(8), zpoolprops(7), zfsprops(7).

One pool with one file system, its root dataset. The pool is imported only while that is mounted: an exported pool holds
nothing in the ARC, and none stays behind.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from fslab.errors import nearest
from fslab.filesystem_abilities import Ability, Limits
from fslab.storage.filesystems import FileSystem, Kernels, valued
from fslab.system.tools import Tool

# Without those that name files or ask for passphrases, and those that decide where and whether it is mounted.
POOL_PROPERTIES = ("ashift", "autotrim", "failmode")
PROPERTIES = (
    "aclinherit", "aclmode", "acltype", "atime", "casesensitivity", "checksum", "compression", "copies", "dedup",
    "direct", "dnodesize", "logbias", "normalization", "prefetch", "primarycache", "recordsize",
    "redundant_metadata", "relatime", "secondarycache", "snapdir", "special_small_blocks", "sync", "utf8only",
    "xattr",
)  # fmt: skip
FEATURE = re.compile(r"feature@[a-z0-9_]+")
GROUPS = ("mirror", "raidz", "raidz2", "raidz3")  # zpoolconcepts(7), "Virtual Devices"
ARC = "OpenZFS before 2.3 goes through its own cache (ARC), also with O_DIRECT"


class Zfs(FileSystem):
    """One pool on the devices, mounted as a legacy file system. The ``-o`` of mkfs options are properties of the pool,
    the ``-O`` those of its file system. Mounted without its helper, which adds nothing for a legacy file system."""

    summary = "pooled storage, copy on write, checksums (OpenZFS)"
    tools = (Tool(program="zpool", package="zfsutils-linux", component="contrib"),)
    module = Tool(program="the kernel module zfs", package="zfs-dkms", component="contrib")
    mkfs = ("zpool", "create", "-f")
    mount_type = "zfs"
    mount_flags = ("-i",)
    kernels = Kernels(outside="OpenZFS")
    log_prefixes = ("ZFS", "SPL")
    min_size_bytes = 64 << 20  # zpool-create(8): the smallest device
    limits = Limits(
        lacks={
            Ability.DIRECT_READS: ARC,
            Ability.DIRECT_WRITES: ARC,
            Ability.REFLINK: "OpenZFS before 2.3 shares no blocks by default",
        }
    )
    limits_before = "2.3"  # its release notes: "Direct IO"; zfs(4), zfs_bclone_enabled
    mkfs_flags = valued("-o -O")
    mount_options = {}
    # zfsprops(7)
    removed_options = dict.fromkeys(
        PROPERTIES, "ZFS has properties instead of mount options: mkfs: -O PROPERTY=VALUE"
    )

    def mkfs_mistakes(self, options: str) -> list[str]:
        """Return what is wrong with them, also properties that ZFS does not have, or that fslab sets."""
        return super().mkfs_mistakes(options) or list(_property_mistakes(shlex.split(options)))

    def mkfs_argv(self, options: str, device: str, *, discard: bool) -> list[str]:  # noqa: ARG002
        """Return ``zpool create``, without a cache file, so that the pool is not imported at boot. It never discards.

        The layout's word for a group of devices (``mirror``) comes before them.
        """
        words = shlex.split(options)
        group = [word for word in words[:1] if word in GROUPS]
        own = ["-o", "cachefile=none", "-O", "mountpoint=legacy"]
        return [*self.mkfs, *own, *words[len(group) :], _pool(device), *group, device]

    def mount_argv(self, options: str, device: str, target: str) -> list[str]:
        """Return ``mount -t zfs``, with the pool's name instead of the device."""
        return super().mount_argv(options, _pool(device), target)

    def features_argv(self, device: str, target: str) -> list[str]:  # noqa: ARG002
        """Return ``zfs get`` for all properties."""
        return ["zfs", "get", "-H", "-o", "property,value", "all", _pool(device)]

    def feature_words(self, output: str) -> frozenset[str]:
        """Return the properties that a study can set: ``recordsize=128K``."""
        found = (line.split("\t") for line in output.splitlines())
        return frozenset(
            f"{words[0]}={words[1]}" for words in found if len(words) == 2 and words[0] in PROPERTIES
        )

    def import_argv(self, devices: Sequence[str]) -> list[str]:
        """Return ``zpool import``, which looks at no other device and mounts nothing."""
        places = [word for device in devices for word in ("-d", device)]
        return ["zpool", "import", "-N", "-o", "cachefile=none", *places, _pool(devices[0])]

    def export_argv(self, device: str) -> list[str]:
        return ["zpool", "export", _pool(device)]

    def imported_argv(self, device: str) -> list[str]:
        """Return ``zpool list`` for this pool only, with the devices of the pool."""
        return ["zpool", "list", "-v", "-H", "-P", _pool(device)]


def _pool(device: str) -> str:
    """Return the name of the pool on a device: the name of fslab's node for it."""
    return PurePath(device).name


def _property_mistakes(words: Sequence[str]) -> Iterator[str]:
    """Yield the mistakes of all properties. ``words``: mkfs options whose flags are known, and have values."""
    left = iter(words)
    for word in left:
        name, equals, value = (word[2:] or next(left)).partition("=")
        known = POOL_PROPERTIES if word[:2] == "-o" else PROPERTIES
        if not (name in known or (word[:2] == "-o" and FEATURE.fullmatch(name))):
            yield f"fslab does not know or allow the property '{word[:2]} {name}' of zfs: {nearest(name, known)}"
        elif not (equals and value):
            yield f"property '{name}' of zfs needs a value: {word[:2]} {name}=VALUE"
