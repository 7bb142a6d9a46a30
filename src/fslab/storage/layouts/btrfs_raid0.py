"""btrfs's own RAID 0: the file system stripes its data over its devices. mkfs.btrfs(8), "PROFILES"."""

from typing import Literal

from pydantic import Field

from fslab.storage.layouts import _btrfs_zfs


class BtrfsRaid0Options(_btrfs_zfs.ChunklessOptions):
    """The profile of metadata."""

    metadata: Literal["raid0", "raid1"] = Field(
        "raid1", description="profile of metadata; `raid1` is also the default of mkfs.btrfs on several disks"
    )


class BtrfsRaid0(_btrfs_zfs.OwnLayout[BtrfsRaid0Options]):
    """The file system itself stripes data, in chunks of 64 KiB."""

    summary = "btrfs RAID 0: data striped by btrfs itself"
    data = "raid0"
    Options = BtrfsRaid0Options
