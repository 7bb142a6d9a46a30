"""Shrinking a mounted file system."""

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
        before = place.mounted_bytes
        done = place.run(argv)
        if before - place.mounted_bytes >= LESS_BYTES // 2:
            return features.yes()
        return features.not_resized(done)
