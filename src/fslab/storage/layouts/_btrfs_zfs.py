"""The common parts of layouts of btrfs and ZFS themselves, which spread over their devices. mkfs.btrfs(8), btrfs(5),
zpoolconcepts(7).

No joined block device is created. Only the kernel's registration of the devices has to be undone.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import ClassVar

from fslab.storage import layouts
from fslab.storage.layouts import LayoutPlan, O, SeveralLayout
from fslab.system.tools import Tool

BTRFS = Tool(program="btrfs", package="btrfs-progs")
SHORT, LONG = ("-d", "-m", "-M"), ("--data", "--metadata", "--mixed")


class ChunklessOptions(layouts.Disks):
    """The number of disks. The chunk of btrfs is fixed."""

    without: ClassVar[Mapping[str, str]] = {"chunk": "the chunk of btrfs is always 64 KiB"}


class OwnLayout(SeveralLayout[O]):
    """Base of btrfs's profiles over several disks. ``data``: the profile of data, and of metadata if there is no option
    for it. ``copies``, ``parities``: of data."""

    tools = (BTRFS,)
    filesystems = frozenset({"btrfs"})
    least_disk_bytes = 125 << 20  # mkfs.btrfs refuses a smaller one (btrfs-progs 6.2)
    data: ClassVar[str]
    copies: ClassVar[int] = 1
    parities: ClassVar[int] = 0

    def usable_bytes(self, options: O, disk_bytes: int) -> int:
        return (self.disks(options) - self.parities) * disk_bytes // self.copies

    def plan(self, options: O, devices: Sequence[str], campaign: str) -> LayoutPlan:  # noqa: ARG002
        """Return the plan: mkfs gets all devices, and mount options name each, so that no scan is needed before."""
        first, *others = devices
        return LayoutPlan(
            device=first,
            members=tuple(others),
            create=(("wipefs", "--all", "--quiet", *devices),),
            remove=(("btrfs", "device", "scan", "--forget", *devices),),
            deactivate=(("btrfs", "device", "scan", "--forget", *devices),),
            mkfs_options=f"-d {self.data} -m {getattr(options, 'metadata', self.data)}",
            mount_options=",".join(f"device={device}" for device in others),
        )

    def check_mkfs_options(self, options: str) -> None:
        """Raise ValueError for a profile, because the layout sets it."""
        for word in shlex.split(options):
            if word[:2] in SHORT or word.partition("=")[0] in LONG:
                raise ValueError(
                    f"mkfs option '{word}' sets a profile, but layout {self.name} sets it: remove the option"
                )


class GroupOptions(layouts.Disks):
    """The number of disks. ZFS has no chunk."""

    without: ClassVar[Mapping[str, str]] = {
        "chunk": "ZFS has no chunk, but the property 'recordsize' (mkfs_options: -O recordsize=16k)"
    }


class GroupLayout(SeveralLayout[O]):
    """Base of ZFS's groups of devices."""

    filesystems = frozenset({"zfs"})
    least_disk_bytes = 64 << 20  # zpool-create(8)

    def group(self, options: O) -> str:
        """Return zpool's word for the group."""
        raise NotImplementedError(f"layout {self.name}: {options}")

    def plan(self, options: O, devices: Sequence[str], campaign: str) -> LayoutPlan:  # noqa: ARG002
        """Return the plan: ``zpool create`` gets all devices."""
        first, *others = devices
        wiped = (("wipefs", "--all", "--quiet", *devices),)
        return LayoutPlan(
            device=first,
            members=tuple(others),
            create=wiped,
            remove=wiped,
            mkfs_options=self.group(options),
        )
