"""btrfs's own RAID 1: the file system keeps two copies on different devices. mkfs.btrfs(8), "PROFILES"."""

from collections.abc import Mapping
from typing import ClassVar

from fslab.storage.layouts import _btrfs, _options

COPIES = 2


class BtrfsRaid1Options(_options.Disks):
    """Two copies of everything, on however many disks."""

    without: ClassVar[Mapping[str, str]] = {"chunk": "copies have no chunk: leave it out"}


class BtrfsRaid1(_btrfs.OwnLayout[BtrfsRaid1Options]):
    """Two copies of data and metadata, on two of the disks."""

    summary = "btrfs over several disks, two copies of everything (only btrfs)"
    data = "raid1"
    Options = BtrfsRaid1Options

    def disks(self, options: BtrfsRaid1Options) -> int:
        return options.disks

    def usable_bytes(self, options: BtrfsRaid1Options, disk_bytes: int) -> int:
        return options.disks * disk_bytes // COPIES
