"""fs-verity: read-only files that the kernel checks against a hash tree on every read."""

import errno

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace
from fslab.system import syscalls
from fslab.system.files import opened

NO = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS}


class Verity(features.Feature):
    """Enables fs-verity for a file, which then must not open for writing."""

    title = "fs-verity"
    summary = "read-only files checked against a hash (Documentation/filesystems/fsverity.rst)"
    group = FeatureGroup.DATA

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Yes: the file can no longer be opened for writing, and can still be read."""
        file = place.directory / "file"
        file.write_bytes(b"x" * 100_000)
        try:
            with opened(file) as descriptor:
                syscalls.enable_verity(descriptor)
        except OSError as error:
            if error.errno in NO:
                return features.no(error.strerror)
            raise
        try:
            file.open("r+b").close()
        except PermissionError:
            return (
                features.yes()
                if len(file.read_bytes()) == 100_000
                else features.no("read returns wrong data")
            )
        return features.no("the file can still be written")
