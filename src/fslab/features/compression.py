"""Transparent compression, requested per file: chattr(1), +c."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume
from fslab.system import mounts, syscalls
from fslab.system.files import opened

BYTES = 8 << 20
BLOCK = b"the same line again and again, which any compressor can shorten\n" * 1024


class Compression(features.Feature):
    """Writes repetitive text to a file with the compression flag, and measures the space that it takes."""

    title = "compression"
    summary = "transparent compression of files"
    group = FeatureGroup.DATA
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Yes: the file has compressed extents, or takes less than half of the space."""
        try:
            with opened(place.directory, os.O_DIRECTORY) as directory:
                syscalls.add_flag(directory, syscalls.COMPRESS_FLAG)
        except OSError as error:
            if error.errno in {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EPERM}:
                return features.no(f"chattr +c: {error.strerror}")
            raise
        mounts.flush(place.directory)
        before = place.free_bytes
        file = place.directory / "file"
        with file.open("wb") as out:
            for _ in range(BYTES // len(BLOCK)):
                out.write(BLOCK)
            out.flush()
            os.fsync(out.fileno())
        mounts.flush(place.directory)
        taken = before - place.free_bytes
        with file.open("rb") as found:
            encoded = _encoded(found.fileno())
        if encoded and taken >= BYTES // 2:
            return features.yes("chattr +c: compressed, but the saved space is not freed")
        if taken < BYTES // 2:
            return features.yes(f"chattr +c: {BYTES} bytes of text take {max(taken, 0)}")
        return features.no(f"chattr +c has no effect: {BYTES} bytes of text take {taken}")


def _encoded(descriptor: int) -> bool:
    try:
        return any(flag & syscalls.FIEMAP_EXTENT_ENCODED for flag in syscalls.extent_flags(descriptor))
    except OSError:
        return False
