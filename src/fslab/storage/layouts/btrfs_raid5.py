"""btrfs's own RAID 5: the file system stripes its data with rotating parity. mkfs.btrfs(8), "PROFILES"; btrfs(5)."""

from typing import Literal

from pydantic import Field

from fslab.storage import layouts
from fslab.storage.layouts import _btrfs_zfs


class BtrfsRaid5Options(_btrfs_zfs.ChunklessOptions):
    """Parity takes the space of one disk."""

    disks: int = Field(
        3, ge=3, le=layouts.MOST_DISKS, description="number of disks; parity takes the space of one"
    )
    metadata: Literal["raid1", "raid5"] = Field(
        "raid1", description="profile of metadata; btrfs(5) advises against `raid5` for it"
    )


class BtrfsRaid5(_btrfs_zfs.OwnLayout[BtrfsRaid5Options]):
    """The file system itself stripes data with parity, in chunks of 64 KiB. btrfs(5) calls it unstable: a power cut can
    leave parity that does not match its data (the write hole)."""

    summary = "btrfs RAID 5: data striped by btrfs itself, with rotating parity"
    data = "raid5"
    parities = 1
    Options = BtrfsRaid5Options
