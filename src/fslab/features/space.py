"""Space for data on an empty volume, as a share of the device: statvfs(3)."""

import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume


class Space(features.Feature):
    """Reads the space that an unprivileged user can fill, right after mkfs."""

    title = "space for data"
    summary = "share of a new file system that files can use"
    group = FeatureGroup.SPACE
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Return the share that statvfs(3) reports as available, without the space reserved for root."""
        found = os.statvfs(place.directory)
        free = found.f_bavail * found.f_frsize
        return features.value(
            round(100 * free / place.size_bytes, 1), "%", detail=f"{free} of {place.size_bytes} bytes"
        )
