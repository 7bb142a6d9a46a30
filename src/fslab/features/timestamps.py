"""The smallest step of a modification time that is kept across a remount: utimensat(2)."""

import os

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace

STEPS_NS = (
    1,
    10,
    100,
    1000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    2_000_000_000,
)
BASE_NS = 1_600_000_000 * 1_000_000_000


class Timestamps(features.Feature):
    """Sets a modification time on one file per step, and finds the smallest step that is unchanged after a remount."""

    title = "timestamp step"
    summary = "smallest step of a modification time, after a remount"
    group = FeatureGroup.LIMITS

    def probe(self, place: TestPlace) -> FeatureFinding:
        for step in STEPS_NS:
            file = place.directory / str(step)
            file.touch()
            os.utime(file, ns=(BASE_NS, BASE_NS + step))
        place.remount()
        for step in STEPS_NS:
            if (place.directory / str(step)).stat().st_mtime_ns == BASE_NS + step:
                return features.value(step, "ns")
        return features.unknown("no time was the same after a remount")
