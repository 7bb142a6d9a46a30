"""btrfs's own RAID 6: the file system stripes its data with two parities. mkfs.btrfs(8), "PROFILES"; btrfs(5)."""

from typing import Literal

from pydantic import Field

from fslab.storage import layouts
from fslab.storage.layouts import _btrfs_zfs


class BtrfsRaid6Options(_btrfs_zfs.ChunklessOptions):
    """The two parities take the space of two disks."""

    disks: int = Field(
        4, ge=4, le=layouts.MOST_DISKS, description="number of disks; the parities take the space of two"
    )
    metadata: Literal["raid1c3", "raid6"] = Field(
        "raid1c3", description="profile of metadata; btrfs(5) advises against `raid6` for it"
    )


class BtrfsRaid6(_btrfs_zfs.OwnLayout[BtrfsRaid6Options]):
    """The file system itself stripes data with two parities, in chunks of 64 KiB. btrfs(5) calls it unstable, as for
    RAID 5."""

    summary = "btrfs RAID 6: data striped by btrfs itself, with two rotating parities"
    data = "raid6"
    parities = 2
    Options = BtrfsRaid6Options
