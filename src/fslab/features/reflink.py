"""Reflinks: a file that shares all blocks of another, ioctl_ficlone(2)."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume
from fslab.system import mounts, syscalls

BYTES = 8 << 20


class Reflink(features.Feature):
    """Clones a file. Checks that the clone takes no space, and that a change of the clone leaves the original as is."""

    title = "reflink"
    summary = "copies that share blocks until one is changed (FICLONE)"
    group = FeatureGroup.DATA
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """The free space before and after distinguishes a clone from a copy."""
        original, copy = place.directory / "original", place.directory / "copy"
        content = os.urandom(BYTES)
        original.write_bytes(content)
        mounts.flush(place.directory)
        before = place.free_bytes
        with original.open("rb") as source, copy.open("wb") as target:
            try:
                syscalls.clone(source.fileno(), target.fileno())
            except OSError as error:
                if error.errno in {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS, errno.EXDEV}:
                    return features.no(error.strerror)
                raise
        mounts.flush(place.directory)
        taken = before - place.free_bytes
        with copy.open("r+b") as file:
            file.write(b"changed")
        if copy.read_bytes()[7:] != content[7:] or original.read_bytes() != content:
            return features.no("a change of the clone changed the original")
        if taken > BYTES // 2:
            return features.no(f"the clone took {taken} bytes")
        return features.yes()
