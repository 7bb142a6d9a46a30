"""Inodes: tests whether the file system runs out of inodes before it runs out of space."""

import errno
import os
import time

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume

BOUND = 40_000
LIMIT_S = 20.0
PER_DIRECTORY = 1000
ROOM_LEFT = 0.1


class Inodes(features.Feature):
    """Creates empty files on the smallest volume until it is full, up to ``BOUND`` files or ``LIMIT_S`` seconds."""

    title = "inodes"
    summary = "fixed number of inodes, or dynamic: as many as there is space for"
    group = FeatureGroup.LIMITS
    volume = Volume.SMALL

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Return "fixed" if no file can be created although there is free space."""
        ends = time.monotonic() + LIMIT_S
        for count in range(BOUND):
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
    if found.f_files and found.f_files - found.f_ffree >= BOUND:
        return features.value("dynamic", at_least=True, detail=f"{BOUND} files, {found.f_ffree} inodes free")
    return features.value("dynamic", at_least=True, detail=f"more than {BOUND} files")
