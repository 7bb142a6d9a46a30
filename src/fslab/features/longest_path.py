"""How deep directories can be nested, in bytes of the path; beyond the 4096 bytes that one system call accepts."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace

NAME = "d" * 200
DEPTH = 200
NOT = {errno.ENAMETOOLONG, errno.EMLINK, errno.ELOOP, errno.EINVAL, errno.ENOSPC}


class LongestPath(features.Feature):
    """Creates nested directories, each relative to its parent."""

    title = "longest path"
    summary = f"bytes of the longest path (tested up to {DEPTH * (len(NAME) + 1)})"
    group = FeatureGroup.LIMITS

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Return the depth that was reached, times the length of a path component."""
        at = os.open(place.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for depth in range(DEPTH):
                try:
                    os.mkdir(NAME, dir_fd=at)
                except OSError as error:
                    if error.errno in NOT:
                        return features.value(depth * (len(NAME) + 1), "B", detail=error.strerror)
                    raise
                below = os.open(NAME, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
                os.close(at)
                at = below
        finally:
            os.close(at)
        return features.value(DEPTH * (len(NAME) + 1), "B", at_least=True)
