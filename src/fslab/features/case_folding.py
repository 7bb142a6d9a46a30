"""Names that ignore case: always, or per directory (chattr +F, Documentation/admin-guide/ext4.rst)."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace
from fslab.system import syscalls
from fslab.system.files import opened


class CaseFolding(features.Feature):
    """Creates "File" and looks it up as "fILE"."""

    title = "case folding"
    summary = "names that differ only in case are the same name"
    group = FeatureGroup.NAMES

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Test a normal directory first, then one with the flag."""
        (place.directory / "File").touch()
        if (place.directory / "fILE").exists():
            return features.yes("always")
        folded = place.directory / "folded"
        folded.mkdir()
        try:
            with opened(folded, os.O_DIRECTORY) as descriptor:
                syscalls.add_flag(descriptor, syscalls.CASEFOLD_FLAG)
        except OSError as error:
            if error.errno in {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EPERM}:
                return features.no(f"chattr +F: {error.strerror}")
            raise
        (folded / "File").touch()
        if (folded / "fILE").exists():
            return features.yes("by directory (chattr +F)")
        return features.no("chattr +F has no effect")
