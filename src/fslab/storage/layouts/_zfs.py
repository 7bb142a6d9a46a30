"""The common parts of ZFS's own layouts: one group of devices, which the pool spreads over. zpoolconcepts(7)."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from fslab.storage.layouts import LayoutPlan, O, _options
from fslab.storage.layouts._several import SeveralLayout


class GroupOptions(_options.Disks):
    """The number of disks. ZFS has no chunk."""

    without: ClassVar[Mapping[str, str]] = {"chunk": "ZFS has no chunk; see its 'recordsize': remove it"}


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
