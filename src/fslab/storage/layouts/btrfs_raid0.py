"""btrfs's own RAID 0: the file system stripes its data over its devices. mkfs.btrfs(8), "PROFILES"."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from fslab.storage.layouts import _btrfs, _options


class BtrfsRaid0Options(_options.Disks):
    """btrfs stripes by 64 KiB, always: there is no chunk to choose."""

    without: ClassVar[Mapping[str, str]] = {
        "chunk": "btrfs stripes by 64 KiB, which cannot be changed: leave it out"
    }

    metadata: Literal["raid0", "raid1"] = Field(
        "raid1", description="profile of metadata; mkfs.btrfs's own choice on several disks is `raid1`"
    )


class BtrfsRaid0(_btrfs.OwnLayout[BtrfsRaid0Options]):
    """Data striped by the file system in pieces of 64 KiB, which cannot be changed."""

    summary = "btrfs over several disks, data striped (only btrfs)"
    data = "raid0"
    Options = BtrfsRaid0Options

    def disks(self, options: BtrfsRaid0Options) -> int:
        return options.disks

    def metadata(self, options: BtrfsRaid0Options) -> str:
        return options.metadata

    def usable_bytes(self, options: BtrfsRaid0Options, disk_bytes: int) -> int:
        return options.disks * disk_bytes
