"""Finds a btrfs in sysfs, shared by several probes."""

from pathlib import Path

from fslab.probes import Target
from fslab.system import sysfs


def sysfs_directory(target: Target) -> Path | None:
    """Return ``/sys/fs/btrfs/UUID`` of the file system, which lists each of its devices; None if it is not btrfs.

    A file system on LVM or md lists the joined device, not the disks.
    """
    names = {*target.devices, target.volume}
    for devices in (target.sys / "fs/btrfs").glob("*/devices"):
        if names & {entry.name for entry in sysfs.entries(devices)}:
            return devices.parent
    return None
