"""The largest file: the size that ftruncate(2) can give to a sparse file."""

import errno
import os
from collections.abc import Callable

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume
from fslab.features._bisect import largest
from fslab.system.files import opened

MOST = (1 << 63) - 1
NOT = {errno.EFBIG, errno.EINVAL, errno.EOVERFLOW}


class LargestFile(features.Feature):
    """Finds the largest possible offset, which takes no space, then the largest size up to it."""

    title = "largest file"
    summary = "size of the largest possible file"
    group = FeatureGroup.LIMITS
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Return the largest size; the largest offset if a file of that size does not fit on the volume."""
        with opened(place.directory / "file", os.O_RDWR | os.O_CREAT) as descriptor:
            far = largest(lambda size: _works(os.lseek, descriptor, size, os.SEEK_SET), low=1, high=MOST)
            if far is None:
                return features.unknown("no file can be made larger than 0 bytes")
            if far <= place.size_bytes:
                return features.value(far, "B", at_least=True, detail="limited by this volume")
            try:
                given = largest(lambda size: _works(os.ftruncate, descriptor, size), low=1, high=far)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return features.value(
                    far, "B", detail="largest offset; the volume is too small for such a file"
                )
            os.ftruncate(descriptor, 0)
        return features.value(given or 0, "B")


def _works(call: Callable[..., object], *arguments: int) -> bool:
    try:
        call(*arguments)
    except OSError as error:
        if error.errno in NOT:
            return False
        raise
    return True
