"""Features of names and rights."""

import errno
import os
import struct

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, feature, largest, worked
from fslab.system import syscalls
from fslab.system.files import opened

REFUSED = features.NOT_SUPPORTED | {errno.EPERM}
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


@feature("access control lists", "rights for further users and groups", FeatureGroup.NAMES)
def acl(place: TestPlace) -> FeatureFinding:
    """Grants another user the right to read, and reads the list after a remount. See acl(5)."""
    file = place.directory / "file"
    file.touch(0o640)
    wanted = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in ENTRIES)
    with features.refusable(errors=REFUSED):
        os.setxattr(file, ATTRIBUTE, wanted)
    place.remount()
    return features.yes() if os.getxattr(file, ATTRIBUTE) == wanted else features.no("lost after a remount")


@feature("case folding", "names that differ only in case are the same name", FeatureGroup.NAMES)
def case_folding(place: TestPlace) -> FeatureFinding:
    """Creates "File" and looks it up as "fILE". Test a normal directory first, then one with the flag. See chattr +F,
    Documentation/admin-guide/ext4.rst.
    """
    (place.directory / "File").touch()
    if (place.directory / "fILE").exists():
        return features.yes("always")
    folded = place.directory / "folded"
    folded.mkdir()
    with features.refusable("chattr +F", errors=REFUSED), opened(folded, os.O_DIRECTORY) as descriptor:
        syscalls.add_flag(descriptor, syscalls.CASEFOLD_FLAG)
    (folded / "File").touch()
    if (folded / "fILE").exists():
        return features.yes("by directory (chattr +F)")
    return features.no("chattr +F has no effect")


MOST_BYTES = 65536  # XATTR_SIZE_MAX, the kernel's own limit
TOO_LARGE = {errno.ENOSPC, errno.E2BIG, errno.ERANGE, errno.EINVAL, errno.EFBIG, errno.ENAMETOOLONG}


@feature("extended attribute", "the largest value of one extended attribute", FeatureGroup.NAMES)
def xattr(place: TestPlace) -> FeatureFinding:
    """Sets one attribute on new files, with values of different sizes. Return the size of the largest value that is
    read back unchanged. See xattr(7).
    """
    attempt = 0

    def works(size_bytes: int) -> bool:
        nonlocal attempt
        attempt += 1
        file = place.directory / str(attempt)
        file.touch()
        content = os.urandom(size_bytes)
        written = worked(TOO_LARGE, os.setxattr, file, "user.fslab", content)
        return written and os.getxattr(file, "user.fslab") == content

    with features.refusable(errors=REFUSED):
        found = largest(works, low=1, high=MOST_BYTES)
    if found is None:
        return features.no("no value is accepted, not even of one byte")
    detail = "the kernel's own limit" if found == MOST_BYTES else None
    return features.value(found, "B", detail=detail)
