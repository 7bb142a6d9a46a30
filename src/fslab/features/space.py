"""Features of the space of a file system."""

import errno
import os
import struct

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume, feature
from fslab.system import mountinfo, mounts, syscalls
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
# fs/quota/quotaio_v2.h, version 1: magic number, version, seconds of grace (blocks, inodes), flags; number of blocks,
# free block, block with free entries; a block that is the empty tree.
NO_USERS = struct.pack("=8I", 0xD9C01F11, 1, 604800, 604800, 0, 2, 0, 0).ljust(2 << 10, b"\0")
NO = features.NOT_SUPPORTED | {errno.ESRCH, errno.ENOTBLK, errno.ENODEV}


@feature("quotas", "space accounted by user, or by subvolume", FeatureGroup.SPACE, Volume.OWN)
def quotas(place: TestPlace) -> FeatureFinding:
    """Gives a file to an otherwise unused user id, and queries the space that this user takes. Yes: space is accounted
    per user, or by the quota groups of btrfs. See quotactl(2). A file system that accounts only in a file gets one,
    as quotacheck(8) makes it.
    """
    by = "by user, in a file (quotacheck)" if _of_a_file(place) else "by user"
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
        return features.yes(by)
    return features.no(f"quotactl reports {held} of {BYTES} bytes for the user")


def _of_a_file(place: TestPlace) -> bool:
    """Switch quotas on in an empty file if the mount option asks for them and they are off. Return whether it works."""
    if "usrquota" not in mountinfo.containing(place.directory).options.split(","):
        return False
    try:
        syscalls.used_by_user(place.device, USER)
    except ProcessLookupError:
        file = place.directory / "aquota.user"
        file.write_bytes(NO_USERS)
        return features.worked(NO, syscalls.enable_quotas, place.device, file)
    except OSError:  # they are on, and the user has no files; or the kernel has none
        return False
    return False


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
