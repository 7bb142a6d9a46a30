"""Checksums of data: tests whether a read fails after a byte on the device was changed."""

import errno
import os
from pathlib import Path

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume
from fslab.features._needle import places
from fslab.system import mounts
from fslab.system.files import opened

BYTES = 256 << 10
LATER_BYTES = 24 << 20
MARK = 128 << 10
NEEDLE_BYTES = 64


class Checksums(features.Feature):
    """Writes random bytes, unmounts, finds them on the device, flips one in every copy, mounts and reads."""

    title = "flipped data detected"
    summary = "whether reading data that was changed on the device returns an error"
    group = FeatureGroup.DATA
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Yes: the read fails with an I/O error. No: it returns other bytes than those written."""
        file, content = place.directory / "file", os.urandom(BYTES)
        file.write_bytes(content)
        mounts.flush(place.directory)
        # The last segment of a log is checked when it is replayed. The test is about older data.
        (place.directory / "later").write_bytes(os.urandom(LATER_BYTES))
        mounts.flush(place.directory)
        place.unmount()
        copies = flip(place.device, content[MARK : MARK + NEEDLE_BYTES])
        place.mount()
        if not copies:
            return features.unknown("the written data was not found on the device")
        try:
            found = file.read_bytes()
        except OSError as error:
            if error.errno in {errno.EIO, errno.EUCLEAN, errno.EILSEQ}:
                return features.yes(f"read returns '{error.strerror}'")
            raise
        if found == content:
            return features.unknown("the changed block was not read")
        return features.no("read returns the wrong data without an error")


def flip(device: Path, needle: bytes) -> int:
    """Flip the bits of the first byte of every occurrence of ``needle`` on a device. Returns their number."""
    with opened(device, os.O_RDWR) as descriptor:
        found = list(places(descriptor, needle))
        for place in found:
            os.pwrite(descriptor, bytes([needle[0] ^ 0xFF]), place)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # the next read comes from the device
    return len(found)
