"""POSIX access control lists: acl(5)."""

import errno
import os
import struct

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace

ATTRIBUTE = "system.posix_acl_access"
USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
NOBODY, NO_ID = 65534, 0xFFFFFFFF
ENTRIES = (
    (USER_OBJ, 6, NO_ID),
    (USER, 4, NOBODY),
    (GROUP_OBJ, 4, NO_ID),
    (MASK, 4, NO_ID),
    (OTHER, 0, NO_ID),
)


class Acl(features.Feature):
    """Grants another user the right to read, and reads the list after a remount."""

    title = "access control lists"
    summary = "rights for further users and groups"
    group = FeatureGroup.NAMES

    def probe(self, place: TestPlace) -> FeatureFinding:
        file = place.directory / "file"
        file.touch(0o640)
        wanted = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in ENTRIES)
        try:
            os.setxattr(file, ATTRIBUTE, wanted)
        except OSError as error:
            if error.errno in {errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM, errno.EINVAL}:
                return features.no(error.strerror)
            raise
        place.remount()
        return (
            features.yes() if os.getxattr(file, ATTRIBUTE) == wanted else features.no("lost after a remount")
        )
