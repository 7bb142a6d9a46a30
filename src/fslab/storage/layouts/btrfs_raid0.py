"""btrfs's own RAID 0: the file system stripes its data over its devices. mkfs.btrfs(8), "PROFILES"."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from fslab.storage.layouts import _btrfs, _options


class BtrfsRaid0Options(_options.Disks):
    """btrfs always uses chunks of 64 KiB."""

    without: ClassVar[Mapping[str, str]] = {"chunk": "the chunk of btrfs is always 64 KiB: remove it"}

    metadata: Literal["raid0", "raid1"] = Field(
        "raid1", description="profile of metadata; `raid1` is also the default of mkfs.btrfs on several disks"
    )


class BtrfsRaid0(_btrfs.OwnLayout[BtrfsRaid0Options]):
    """The file system itself stripes data, in chunks of 64 KiB."""

    summary = "btrfs RAID 0: data striped by btrfs itself"
    data = "raid0"
    Options = BtrfsRaid0Options

    def metadata(self, options: BtrfsRaid0Options) -> str:
        return options.metadata

    def usable_bytes(self, options: BtrfsRaid0Options, disk_bytes: int) -> int:
        return options.disks * disk_bytes
