"""The longest name of a file, and whether the limit counts bytes or characters."""

import errno

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace
from fslab.features._bisect import largest

MOST = 4000
NOT = {errno.ENAMETOOLONG, errno.EINVAL, errno.ENOENT, errno.EILSEQ}


class LongestName(features.Feature):
    """Creates files with names of ASCII letters, and of letters that take two bytes in UTF-8."""

    title = "longest name"
    summary = "bytes in the name of a file"
    group = FeatureGroup.LIMITS

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Return the length of the longest name. A name works if the directory lists it afterwards."""
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
