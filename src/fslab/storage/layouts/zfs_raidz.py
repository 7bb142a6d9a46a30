"""ZFS's own RAID with parity: each block is a stripe of its own. zpoolconcepts(7), "Virtual Devices"."""

from typing import Self

from pydantic import Field, model_validator

from fslab.storage import layouts
from fslab.storage.layouts import _btrfs_zfs


class ZfsRaidzOptions(_btrfs_zfs.GroupOptions):
    """Parity takes at least the space of as many disks."""

    disks: int = Field(
        3, ge=2, le=layouts.MOST_DISKS, description="number of disks, more than those of parity"
    )
    parity: int = Field(1, ge=1, le=3, description="disks that may fail: raidz, raidz2 or raidz3")

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.disks <= self.parity:
            raise ValueError(f"parity {self.parity} needs more than {self.parity} disks")
        return self


class ZfsRaidz(_btrfs_zfs.GroupLayout[ZfsRaidzOptions]):
    """Data with parity. A block's stripe is as wide as the block needs, so small blocks take more parity."""

    summary = "ZFS raidz: data with one to three parts of parity, by ZFS itself"
    Options = ZfsRaidzOptions

    def group(self, options: ZfsRaidzOptions) -> str:
        return f"raidz{options.parity if options.parity > 1 else ''}"

    def usable_bytes(self, options: ZfsRaidzOptions, disk_bytes: int) -> int:
        return (options.disks - options.parity) * disk_bytes
