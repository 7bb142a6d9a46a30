"""Hard links: the number of names that one file can have, link(2)."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume

BOUND = 66_000
PER_DIRECTORY = 1000  # if directories are linear lists, a single one with all names would take quadratic time


class HardLinks(features.Feature):
    """Links one file until link(2) fails or the file has ``BOUND`` names."""

    title = "hard links to a file"
    summary = f"number of names that one file can have (tested up to {BOUND})"
    group = FeatureGroup.LIMITS
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Return the number of names, including the first one."""
        file = place.directory / "file"
        file.touch()
        for count in range(1, BOUND):
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
        return features.value(BOUND, at_least=True)
