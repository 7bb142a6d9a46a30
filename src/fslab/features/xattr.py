"""Extended attributes of users, and the size of the largest one: xattr(7)."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace
from fslab.features._bisect import largest

MOST_BYTES = 65536  # XATTR_SIZE_MAX, the kernel's own limit
TOO_LARGE = {errno.ENOSPC, errno.E2BIG, errno.ERANGE, errno.EINVAL, errno.EFBIG, errno.ENAMETOOLONG}


class Xattr(features.Feature):
    """Sets one attribute on new files, with values of different sizes."""

    title = "extended attribute"
    summary = "the largest value of one extended attribute"
    group = FeatureGroup.NAMES

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Return the size of the largest value that is read back unchanged."""
        attempt = 0

        def works(size_bytes: int) -> bool:
            nonlocal attempt
            attempt += 1
            file = place.directory / str(attempt)
            file.touch()
            content = os.urandom(size_bytes)
            try:
                os.setxattr(file, "user.fslab", content)
            except OSError as error:
                if error.errno in TOO_LARGE:
                    return False
                raise
            return os.getxattr(file, "user.fslab") == content

        try:
            found = largest(works, low=1, high=MOST_BYTES)
        except OSError as error:
            if error.errno in {errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM}:
                return features.no(error.strerror)
            raise
        if found is None:
            return features.no("no value is accepted, not even of one byte")
        detail = "the kernel's own limit" if found == MOST_BYTES else None
        return features.value(found, "B", detail=detail)
