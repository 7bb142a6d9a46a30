"""Growing a mounted file system after its device became larger."""

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume


class Grow(features.Feature):
    """Enlarges the device, runs the file system's command, and compares the size."""

    title = "grow online"
    summary = "can be made larger while mounted"
    group = FeatureGroup.SPACE
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Yes: the file system grew by at least half of the device's growth."""
        if place.grow_argv is None:
            return features.no("no command for it")
        before = place.mounted_bytes
        gained = place.enlarge()
        if gained is None:
            return features.unknown("this device cannot be made larger")
        done = place.run(place.grow_argv)
        if place.mounted_bytes - before >= gained // 2:
            return features.yes()
        return features.not_resized(done)
