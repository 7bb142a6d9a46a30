"""Growing a mounted file system after its device became larger."""

import os

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
        before = _size(place)
        gained = place.enlarge()
        if gained is None:
            return features.unknown("this device cannot be made larger")
        done = place.run(place.grow_argv)
        if _size(place) - before >= gained // 2:
            return features.yes()
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        if any("ermission denied" in line or "not permitted" in line for line in said):
            return features.unknown(f"needs CAP_SYS_RESOURCE: {said[-1]}")
        return features.no(f"{place.grow_argv[0]}: {said[-1] if said else 'nothing changed'}")


def _size(place: TestPlace) -> int:
    found = os.statvfs(place.directory)
    return found.f_blocks * found.f_frsize
