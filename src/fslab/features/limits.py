"""Features of the limits of names, files and numbers."""

import errno
import os
import time

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume, feature, largest, worked
from fslab.system.files import opened

LINKS_BOUND = 66_000
PER_DIRECTORY = 1000  # if directories are linear lists, a single one with all names would take quadratic time


@feature(
    "hard links to a file",
    f"number of names that one file can have (tested up to {LINKS_BOUND})",
    FeatureGroup.LIMITS,
    Volume.OWN,
)
def hard_links(place: TestPlace) -> FeatureFinding:
    """Links one file until link(2) fails or the file has ``LINKS_BOUND`` names. Return the number of names, including
    the first one.
    """
    file = place.directory / "file"
    file.touch()
    for count in range(1, LINKS_BOUND):
        directory = place.directory / f"d{count // PER_DIRECTORY}"
        directory.mkdir(exist_ok=True)
        try:
            os.link(file, directory / str(count))
        except OSError as error:
            if error.errno == errno.EMLINK:
                return features.value(count)
            if count == 1 and error.errno in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}:
                return features.no(error.strerror)
            if error.errno == errno.ENOSPC:
                return features.value(count, at_least=True, detail="then the volume was full")
            raise
    return features.value(LINKS_BOUND, at_least=True)


INODES_BOUND = 40_000
LIMIT_S = 20.0
ROOM_LEFT = 0.1


@feature(
    "inodes",
    "fixed number of inodes, or dynamic: as many as there is space for",
    FeatureGroup.LIMITS,
    Volume.SMALL,
)
def inodes(place: TestPlace) -> FeatureFinding:
    """Creates empty files on the smallest volume until it is full, up to ``INODES_BOUND`` files or ``LIMIT_S`` seconds.
    Return "fixed" if no file can be created although there is free space.
    """
    ends = time.monotonic() + LIMIT_S
    for count in range(INODES_BOUND):
        if time.monotonic() > ends:
            return features.value("dynamic", at_least=True, detail=f"more than {count} files")
        directory = place.directory / f"d{count // PER_DIRECTORY}"
        try:
            directory.mkdir(exist_ok=True)
            os.close(os.open(directory / str(count), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            if error.errno == errno.ENOSPC:
                return _full(place, count)
            raise
    return _never_full(place)


def _full(place: TestPlace, count: int) -> FeatureFinding:
    found = os.statvfs(place.directory)
    left = found.f_bfree / found.f_blocks
    per = place.size_bytes // max(count, 1)
    if left > ROOM_LEFT:
        return features.value(
            "fixed", detail=f"{count} files, one per {per} bytes, with {left:.0%} of the space free"
        )
    return features.value("dynamic", detail=f"{count} files, then the space was full")


def _never_full(place: TestPlace) -> FeatureFinding:
    found = os.statvfs(place.directory)
    if found.f_files and found.f_files - found.f_ffree >= INODES_BOUND:
        return features.value(
            "dynamic", at_least=True, detail=f"{INODES_BOUND} files, {found.f_ffree} inodes free"
        )
    return features.value("dynamic", at_least=True, detail=f"more than {INODES_BOUND} files")


LARGEST_SIZE = (1 << 63) - 1
LARGEST_FILE_NOT = {errno.EFBIG, errno.EINVAL, errno.EOVERFLOW}


@feature("largest file", "size of the largest possible file", FeatureGroup.LIMITS, Volume.OWN)
def largest_file(place: TestPlace) -> FeatureFinding:
    """Finds the largest possible offset, which takes no space, then the largest size up to it. Return the largest size;
    the largest offset if a file of that size does not fit on the volume.
    """
    with opened(place.directory / "file", os.O_RDWR | os.O_CREAT) as descriptor:
        far = largest(
            lambda size: worked(LARGEST_FILE_NOT, os.lseek, descriptor, size, os.SEEK_SET),
            low=1,
            high=LARGEST_SIZE,
        )
        if far is None:
            return features.unknown("no file can be made larger than 0 bytes")
        if far <= place.size_bytes:
            return features.value(far, "B", at_least=True, detail="limited by this volume")
        try:
            given = largest(
                lambda size: worked(LARGEST_FILE_NOT, os.ftruncate, descriptor, size), low=1, high=far
            )
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return features.value(far, "B", detail="largest offset; the volume is too small for such a file")
        os.ftruncate(descriptor, 0)
    return features.value(given or 0, "B")


LONGEST_NAME_MOST = 4000
LONGEST_NAME_NOT = {errno.ENAMETOOLONG, errno.EINVAL, errno.ENOENT, errno.EILSEQ}


@feature("longest name", "bytes in the name of a file", FeatureGroup.LIMITS)
def longest_name(place: TestPlace) -> FeatureFinding:
    """Creates files with names of ASCII letters, and of letters that take two bytes in UTF-8. Return the length of the
    longest name. A name works if the directory lists it afterwards.
    """
    plain, wide = _longest(place, "x"), _longest(place, "é")
    if plain is None:
        return features.unknown("no name was accepted")
    if wide is not None and wide >= plain:
        return features.value(plain, "chars", detail=f"{2 * wide} bytes in UTF-8")
    return features.value(plain, "B")


def _made(place: TestPlace, name: str) -> bool:
    file = place.directory / name
    if not worked(LONGEST_NAME_NOT, file.touch):
        return False
    listed = {entry.name for entry in place.directory.iterdir()}
    file.unlink()
    return name in listed


def _longest(place: TestPlace, letter: str) -> int | None:
    return largest(lambda count: _made(place, letter * count), low=1, high=LONGEST_NAME_MOST)


NAME = "d" * 200
DEPTH = 200
LONGEST_PATH_NOT = {errno.ENAMETOOLONG, errno.EMLINK, errno.ELOOP, errno.EINVAL, errno.ENOSPC}


@feature(
    "longest path", f"bytes of the longest path (tested up to {DEPTH * (len(NAME) + 1)})", FeatureGroup.LIMITS
)
def longest_path(place: TestPlace) -> FeatureFinding:
    """Creates nested directories, each relative to its parent, also beyond the 4096 bytes that one system call accepts.
    Return the depth that was reached, times the length of a path component.
    """
    at = os.open(place.directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for depth in range(DEPTH):
            try:
                os.mkdir(NAME, dir_fd=at)
            except OSError as error:
                if error.errno in LONGEST_PATH_NOT:
                    return features.value(depth * (len(NAME) + 1), "B", detail=error.strerror)
                raise
            below = os.open(NAME, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
    finally:
        os.close(at)
    return features.value(DEPTH * (len(NAME) + 1), "B", at_least=True)


STEPS_NS = (*(10**power for power in range(10)), 2_000_000_000)
BASE_NS = 1_600_000_000 * 1_000_000_000


@feature("timestamp step", "smallest step of a modification time, after a remount", FeatureGroup.LIMITS)
def timestamps(place: TestPlace) -> FeatureFinding:
    """Sets a modification time on one file per step, and finds the smallest step that is unchanged after a remount. See
    utimensat(2).
    """
    for step in STEPS_NS:
        file = place.directory / str(step)
        file.touch()
        os.utime(file, ns=(BASE_NS, BASE_NS + step))
    place.remount()
    for step in STEPS_NS:
        if (place.directory / str(step)).stat().st_mtime_ns == BASE_NS + step:
            return features.value(step, "ns")
    return features.unknown("no time was the same after a remount")
