"""Quotas: tests whether the file system accounts the space of each user (or each subvolume), quotactl(2)."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume
from fslab.system import mounts, syscalls
from fslab.system.files import opened

USER = 54321
BYTES = 4 << 20
NO = {errno.ESRCH, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOTBLK, errno.ENODEV}


class Quotas(features.Feature):
    """Gives a file to an otherwise unused user id, and queries the space that this user takes."""

    title = "quotas"
    summary = "space accounted by user, or by subvolume"
    group = FeatureGroup.SPACE
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Yes: space is accounted per user, or by the quota groups of btrfs."""
        file = place.directory / "file"
        file.write_bytes(os.urandom(BYTES))
        try:
            os.chown(file, USER, USER)
        except PermissionError as error:
            return features.no(f"files have no owners: {error.strerror}")
        mounts.flush(place.directory)
        try:
            held = syscalls.used_by_user(place.device, USER)
        except OSError as error:
            if error.errno not in NO:
                raise
            return _groups(place, error)
        if held >= BYTES:
            return features.yes("by user")
        return features.no(f"quotactl reports {held} of {BYTES} bytes for the user")


def _groups(place: TestPlace, why: OSError) -> FeatureFinding:
    try:
        with opened(place.directory, os.O_DIRECTORY) as directory:
            syscalls.enable_qgroups(directory)
    except OSError as error:
        if error.errno in NO:
            return features.no(f"quotactl: {why.strerror}")
        raise
    return features.yes("by subvolume (quota groups)")
