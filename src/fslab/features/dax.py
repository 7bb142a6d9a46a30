"""DAX: files in persistent memory, mapped without a page cache: Documentation/filesystems/dax.rst."""

import errno

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace
from fslab.system import syscalls, sysfs


class Dax(features.Feature):
    """Maps a file with MAP_SYNC, which works only with DAX."""

    title = "DAX"
    summary = "files in persistent memory, mapped without the page cache"
    group = FeatureGroup.CALLS

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Unknown on a device that is not persistent memory."""
        queue = sysfs.queue_directory(sysfs.block_directory(place.device))
        if sysfs.number(queue / "dax") != 1:
            return features.unknown("the device is not persistent memory")
        file = place.directory / "file"
        file.write_bytes(b"x" * syscalls.PAGE_BYTES)
        try:
            syscalls.map_synchronously(file)
        except OSError as error:
            if error.errno in {errno.EOPNOTSUPP, errno.EINVAL}:
                return features.no(error.strerror)
            raise
        return features.yes()
