"""Direct I/O: tests whether it works, the smallest request, and whether it bypasses the page cache."""

import errno
import os
from pathlib import Path

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, _direct
from fslab.system import syscalls

STEPS = (512, 1024, 2048, 4096, 8192, 16384, 65536)


class DirectIo(features.Feature):
    """Reads and writes with each request size of ``STEPS``, and tests whether pages become dirty or cached."""

    title = "direct I/O, step"
    summary = "O_DIRECT: smallest request, and whether it bypasses the page cache"
    group = FeatureGroup.CALLS

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Return the smallest request size that worked; the detail contains the values from statx(2)."""
        file = place.directory / "file"
        file.write_bytes(os.urandom(_direct.BYTES))
        place.remount()
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_DIRECT)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.EOPNOTSUPP}:
                return features.no(error.strerror)
            raise
        try:
            cached = _direct.reads_are_cached(
                descriptor, file
            )  # before any write: a read of pages that a write left dirty comes from the cache
            taken = [size for size in STEPS if _direct.works(descriptor, size)]
            step = _direct.first_clean(descriptor, taken, os.fstatvfs(descriptor).f_bsize)
        finally:
            os.close(descriptor)
        if not taken:
            return features.no(f"open(2) succeeds, but requests of up to {STEPS[-1]} bytes fail")
        if step is None and cached:
            return features.no("open(2) succeeds, but reads and writes go through the page cache")
        if step is None:
            return features.value("reads only", detail="writes go through the page cache")
        if cached:
            return features.value("writes only", detail="reads go through the page cache")
        return features.value(step, "B", detail=_said(file))


def _said(file: Path) -> str | None:
    said = syscalls.direct_alignment(file)
    if said is None:
        return None
    return f"statx: memory {said.memory_bytes}, offset {said.offset_bytes}"
