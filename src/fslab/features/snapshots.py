"""Snapshots: an earlier state that can be read while the file system is in use.

Tested with the two kernel interfaces that need no tool: subvolumes of btrfs and checkpoints of NILFS2.
"""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume
from fslab.system import mounts, syscalls
from fslab.system.files import opened

NOT_THERE = {errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}
OLD, NEW = b"as it was", b"as it is now"


class Snapshots(features.Feature):
    """Writes a file, takes a snapshot, changes the file, and reads it in both."""

    title = "snapshots"
    summary = "an earlier state of all files, kept and readable"
    group = FeatureGroup.DATA
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Use the first interface that the kernel supports on this file system."""
        with opened(place.directory, os.O_DIRECTORY) as descriptor:
            for mechanism in (_subvolume, _checkpoint):
                try:
                    return mechanism(place, descriptor)
                except OSError as error:
                    if error.errno not in NOT_THERE:
                        raise
        return features.no("neither subvolumes (btrfs) nor checkpoints (NILFS2)")


def _subvolume(place: TestPlace, directory: int) -> FeatureFinding:
    syscalls.create_subvolume(directory, "volume")
    file = place.directory / "volume" / "file"
    file.write_bytes(OLD)
    with opened(file.parent, os.O_DIRECTORY) as source:
        syscalls.snapshot_subvolume(source, directory, "snapshot")
    file.write_bytes(NEW)
    kept = (place.directory / "snapshot" / "file").read_bytes() == OLD and file.read_bytes() == NEW
    return features.yes("subvolumes, writable") if kept else features.no("the snapshot changed as well")


def _checkpoint(place: TestPlace, directory: int) -> FeatureFinding:
    file = place.directory / "file"
    file.write_bytes(OLD)
    mounts.flush(place.directory)
    number = syscalls.keep_checkpoint(directory)
    file.write_bytes(NEW)
    mounts.flush(place.directory)
    with place.also_mounted(f"ro,cp={number}") as root:
        found = root / file.relative_to(mounts.containing(file).target)
        kept = found.read_bytes() == OLD and file.read_bytes() == NEW
    return features.yes("checkpoints, read-only") if kept else features.no("the checkpoint changed as well")
