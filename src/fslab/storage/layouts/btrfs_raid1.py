"""btrfs's own RAID 1: the file system stores two copies on different devices. mkfs.btrfs(8), "PROFILES"."""

from collections.abc import Mapping
from typing import ClassVar

from fslab.storage import layouts
from fslab.storage.layouts import _btrfs_zfs


class BtrfsRaid1Options(layouts.Disks):
    """Two copies of data and metadata, on any number of disks."""

    without: ClassVar[Mapping[str, str]] = {"chunk": "btrfs RAID 1 has no chunk"}


class BtrfsRaid1(_btrfs_zfs.OwnLayout[BtrfsRaid1Options]):
    """Two copies of data and metadata, each on another disk."""

    summary = "btrfs RAID 1: two copies of everything, kept by btrfs itself"
    data = "raid1"
    copies = 2
    Options = BtrfsRaid1Options
