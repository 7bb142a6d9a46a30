"""Shrinking a mounted file system."""

import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume

LESS_BYTES = 64 << 20


class Shrink(features.Feature):
    """Runs the file system's command for a smaller size, and compares the size."""

    title = "shrink online"
    summary = "can be made smaller while mounted"
    group = FeatureGroup.SPACE
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Yes: the file system shrank by at least half of the requested amount."""
        argv = place.shrink_argv(place.size_bytes - LESS_BYTES)
        if argv is None:
            return features.no("no command for it")
        before = _size(place)
        done = place.run(argv)
        if before - _size(place) >= LESS_BYTES // 2:
            return features.yes()
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        if any("ermission denied" in line or "not permitted" in line for line in said):
            return features.unknown(f"needs CAP_SYS_RESOURCE: {said[-1]}")
        return features.no(f"{argv[0]}: {said[-1] if said else 'nothing changed'}")


def _size(place: TestPlace) -> int:
    found = os.statvfs(place.directory)
    return found.f_blocks * found.f_frsize
