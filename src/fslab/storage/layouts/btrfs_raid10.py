"""btrfs's own RAID 10: striped, two copies of each chunk on different devices. mkfs.btrfs(8), "PROFILES"."""

from pydantic import Field

from fslab.storage import layouts
from fslab.storage.layouts import _btrfs_zfs


class BtrfsRaid10Options(_btrfs_zfs.ChunklessOptions):
    """Two copies of data and metadata, striped over all disks."""

    disks: int = Field(4, ge=2, le=layouts.MOST_DISKS, description="number of disks")


class BtrfsRaid10(_btrfs_zfs.OwnLayout[BtrfsRaid10Options]):
    """The file system itself stripes data, in chunks of 64 KiB, and stores two copies."""

    summary = "btrfs RAID 10: data striped by btrfs itself, two copies of everything"
    data = "raid10"
    copies = 2
    Options = BtrfsRaid10Options
