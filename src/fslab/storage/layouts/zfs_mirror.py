"""ZFS's own mirror: a copy on every disk. zpoolconcepts(7), "Virtual Devices"."""

from fslab.storage.layouts import _btrfs_zfs


class ZfsMirrorOptions(_btrfs_zfs.GroupOptions):
    """As many copies as disks."""


class ZfsMirror(_btrfs_zfs.GroupLayout[ZfsMirrorOptions]):
    """A copy of everything on every disk."""

    summary = "ZFS mirror: a copy of everything on every disk, kept by ZFS itself"
    Options = ZfsMirrorOptions

    def group(self, options: ZfsMirrorOptions) -> str:  # noqa: ARG002
        return "mirror"

    def usable_bytes(self, options: ZfsMirrorOptions, disk_bytes: int) -> int:  # noqa: ARG002
        return disk_bytes
