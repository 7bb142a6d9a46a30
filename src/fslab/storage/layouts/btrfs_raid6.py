"""btrfs's own RAID 6: the file system stripes its data with two parities. mkfs.btrfs(8), "PROFILES"; btrfs(5)."""

from typing import Literal

from pydantic import Field

from fslab.storage.layouts import _btrfs, _options

PARITIES = 2


class BtrfsRaid6Options(_btrfs.ChunklessOptions):
    """The two parities take the space of two disks."""

    disks: int = Field(
        4, ge=4, le=_options.MOST_DISKS, description="number of disks; the parities take the space of two"
    )
    metadata: Literal["raid1c3", "raid6"] = Field(
        "raid1c3", description="profile of metadata; btrfs(5) advises against `raid6` for it"
    )


class BtrfsRaid6(_btrfs.OwnLayout[BtrfsRaid6Options]):
    """The file system itself stripes data with two parities, in chunks of 64 KiB. btrfs(5) calls it unstable, as for
    RAID 5."""

    summary = "btrfs RAID 6: data striped by btrfs itself, with two rotating parities"
    data = "raid6"
    Options = BtrfsRaid6Options

    def metadata(self, options: BtrfsRaid6Options) -> str:
        return options.metadata

    def usable_bytes(self, options: BtrfsRaid6Options, disk_bytes: int) -> int:
        return (options.disks - PARITIES) * disk_bytes
