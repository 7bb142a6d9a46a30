"""Space for data on an empty volume, as a share of the device: statvfs(3)."""

import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace, Volume


class Space(features.Feature):
    """What an unprivileged user may fill, right after mkfs."""

    title = "space for data"
    summary = "share of a new file system that files can use"
    group = FeatureGroup.SPACE
    volume = Volume.OWN

    def probe(self, place: TestPlace) -> FeatureFinding:
        """As the file system says; reserves for root are not counted."""
        found = os.statvfs(place.directory)
        free = found.f_bavail * found.f_frsize
        return features.value(
            round(100 * free / place.size_bytes, 1), "%", detail=f"{free} of {place.size_bytes} bytes"
        )
