"""The longest name of a file, in bytes, and whether bytes or characters are counted."""

import errno

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace
from fslab.features._bisect import largest

MOST = 4000
NOT = {errno.ENAMETOOLONG, errno.EINVAL, errno.ENOENT, errno.EILSEQ}


class LongestName(features.Feature):
    """Names of plain letters, and of letters that take two bytes in UTF-8."""

    title = "longest name"
    summary = "bytes in the name of a file"
    group = FeatureGroup.LIMITS

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Longest of both kinds; the name must be found again in the directory."""
        plain, wide = _longest(place, "x"), _longest(place, "é")
        if plain is None:
            return features.unknown("no name was accepted")
        if wide is not None and wide >= plain:
            return features.value(plain, "chars", detail=f"{2 * wide} bytes in UTF-8")
        return features.value(plain, "B")


def _made(place: TestPlace, name: str) -> bool:
    file = place.directory / name
    try:
        file.touch()
    except OSError as error:
        if error.errno in NOT:
            return False
        raise
    listed = {entry.name for entry in place.directory.iterdir()}
    file.unlink()
    return name in listed


def _longest(place: TestPlace, letter: str) -> int | None:
    return largest(lambda count: _made(place, letter * count), low=1, high=MOST)
