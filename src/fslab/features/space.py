"""Features of the space of a file system."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume, feature
from fslab.system import mounts, syscalls
from fslab.system.files import opened


@feature("grow online", "can be made larger while mounted", FeatureGroup.SPACE, Volume.OWN)
def grow(place: TestPlace) -> FeatureFinding:
    """Enlarges the device, runs the file system's command, and compares the size. Yes: the file system grew by at least
    half of the device's growth.
    """
    if place.grow_argv is None:
        return features.no("no command for it")
    before = place.mounted_bytes
    gained = place.enlarge()
    if gained is None:
        return features.unknown("this device cannot be made larger")
    done = place.run(place.grow_argv)
    if place.mounted_bytes - before >= gained // 2:
        return features.yes()
    return features.not_resized(done)


USER = 54321
BYTES = 4 << 20
NO = features.NOT_SUPPORTED | {errno.ESRCH, errno.ENOTBLK, errno.ENODEV}


@feature("quotas", "space accounted by user, or by subvolume", FeatureGroup.SPACE, Volume.OWN)
def quotas(place: TestPlace) -> FeatureFinding:
    """Gives a file to an otherwise unused user id, and queries the space that this user takes. Yes: space is accounted
    per user, or by the quota groups of btrfs. See quotactl(2).
    """
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


LESS_BYTES = 64 << 20


@feature("shrink online", "can be made smaller while mounted", FeatureGroup.SPACE, Volume.OWN)
def shrink(place: TestPlace) -> FeatureFinding:
    """Runs the file system's command for a smaller size, and compares the size. Yes: the file system shrank by at least
    half of the requested amount.
    """
    argv = place.shrink_argv(place.size_bytes - LESS_BYTES)
    if argv is None:
        return features.no("no command for it")
    before = place.mounted_bytes
    done = place.run(argv)
    if before - place.mounted_bytes >= LESS_BYTES // 2:
        return features.yes()
    return features.not_resized(done)


@feature("space for data", "share of a new file system that files can use", FeatureGroup.SPACE, Volume.OWN)
def space(place: TestPlace) -> FeatureFinding:
    """Reads the space that an unprivileged user can fill, right after mkfs. Return the share that statvfs(3) reports as
    available, without the space reserved for root.
    """
    found = os.statvfs(place.directory)
    free = found.f_bavail * found.f_frsize
    return features.value(
        round(100 * free / place.size_bytes, 1), "%", detail=f"{free} of {place.size_bytes} bytes"
    )
