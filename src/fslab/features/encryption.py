"""Encryption per directory: Documentation/filesystems/fscrypt.rst."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume
from fslab.features._needle import places
from fslab.system import mounts, syscalls
from fslab.system.files import opened

NO = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS}
KEY_BYTES = 64
BYTES = 1 << 20


class Encryption(features.Feature):
    """Sets a key for a directory, writes a file in it, and searches the device for the written data."""

    title = "encryption"
    summary = "encryption by directory (fscrypt)"
    group = FeatureGroup.DATA
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Yes: the device does not contain the plain data."""
        directory = place.directory / "secret"
        directory.mkdir()
        try:
            with opened(directory, os.O_DIRECTORY) as descriptor:
                syscalls.encrypt_directory(descriptor, os.urandom(KEY_BYTES))
        except OSError as error:
            if error.errno in NO:
                return features.no(error.strerror)
            raise
        needle = os.urandom(64)
        (directory / "file").write_bytes(needle * (BYTES // len(needle)))
        mounts.flush(place.directory)
        if (directory / "file").read_bytes()[:64] != needle:
            return features.no("read returns other data than was written")
        place.unmount()
        with opened(place.device) as device:
            found = any(True for _ in places(device, needle))
        place.mount()
        return features.no("the text is on the device unencrypted") if found else features.yes()
