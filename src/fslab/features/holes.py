"""Holes: ranges of a file that take no space, and SEEK_HOLE, which finds them: lseek(2)."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace
from fslab.system import mounts
from fslab.system.files import opened

BYTES = 16 << 20
DATA = 64 << 10
NOT_SPARSE = "unwritten parts take space"


class Holes(features.Feature):
    """Writes both ends of a file, and looks for a hole between them."""

    title = "holes, SEEK_HOLE"
    summary = "sparse files, and SEEK_HOLE finds their holes"
    group = FeatureGroup.CALLS

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Yes: the unwritten range takes no space, and SEEK_HOLE finds it."""
        with opened(place.directory / "file", os.O_RDWR | os.O_CREAT) as descriptor:
            os.pwrite(descriptor, b"x" * DATA, 0)
            os.pwrite(descriptor, b"x" * DATA, BYTES - DATA)
            mounts.flush(place.directory)
            sparse = os.fstat(descriptor).st_blocks * 512 < BYTES // 2
            try:
                hole = os.lseek(descriptor, 0, os.SEEK_HOLE)
            except OSError as error:
                if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP, errno.ENXIO}:
                    raise
                hole = BYTES
        if not sparse:
            return features.no(NOT_SPARSE)
        return features.yes() if hole < BYTES - DATA else features.no("sparse, but SEEK_HOLE finds no hole")
