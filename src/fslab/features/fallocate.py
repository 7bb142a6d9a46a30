"""fallocate(2): tests which of its modes work."""

import errno
import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace
from fslab.system import syscalls
from fslab.system.files import opened
from fslab.system.syscalls import Fallocate

STEP = 64 << 10
BYTES = 16 * STEP
MODES = {
    "allocate": Fallocate.ALLOCATE,
    "keep-size": Fallocate.KEEP_SIZE,
    "punch-hole": Fallocate.PUNCH_HOLE | Fallocate.KEEP_SIZE,
    "zero": Fallocate.ZERO_RANGE,
    "collapse": Fallocate.COLLAPSE_RANGE,
    "insert": Fallocate.INSERT_RANGE,
    "unshare": Fallocate.UNSHARE_RANGE,
    "write-zeroes": Fallocate.WRITE_ZEROES,
}
NOT = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENODEV}


class FallocateModes(features.Feature):
    """Calls fallocate with each mode, each on a new file."""

    title = "fallocate modes"
    summary = f"modes of fallocate(2) that work: {', '.join(MODES)}"
    group = FeatureGroup.CALLS

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Return how many modes work; the detail lists them."""
        able = [name for name, mode in MODES.items() if _works(place, name, mode)]
        if not able:
            return features.no()
        return features.value(f"{len(able)} of {len(MODES)}", detail=", ".join(able))


def _works(place: TestPlace, name: str, mode: Fallocate) -> bool:
    file = place.directory / name
    file.write_bytes(b"x" * BYTES)
    beyond = BYTES if mode in {Fallocate.ALLOCATE, Fallocate.KEEP_SIZE} else STEP
    try:
        with opened(file, os.O_RDWR) as descriptor:
            syscalls.fallocate(descriptor, mode, beyond, STEP)
    except OSError as error:
        if error.errno in NOT:
            return False
        raise
    return True
