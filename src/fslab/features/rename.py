"""Atomic renames: renameat2(2) with its flags."""

import errno

from fslab import features
from fslab.features import FeatureFinding, FeatureGroup, TestPlace
from fslab.system import syscalls
from fslab.system.syscalls import Rename

NOT = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


class AtomicRename(features.Feature):
    """Renames files with each flag, and checks the contents of the files afterwards."""

    title = "atomic rename"
    summary = "flags of renameat2(2) that work: exchange, noreplace, whiteout"
    group = FeatureGroup.CALLS

    def probe(self, place: TestPlace) -> FeatureFinding:
        able = [name for name, works in TRIES.items() if works(place)]
        if len(able) == len(TRIES):
            return features.yes(", ".join(able))
        if not able:
            return features.no()
        return features.value(f"{len(able)} of {len(TRIES)}", detail=", ".join(able))


def _pair(place: TestPlace, name: str, flag: Rename) -> tuple[bool, bytes, bytes]:
    old, new = place.directory / f"{name}-old", place.directory / f"{name}-new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    try:
        syscalls.rename(old, new, flag)
    except OSError as error:
        if error.errno in NOT:
            return False, b"", b""
        if error.errno != errno.EEXIST:
            raise
    return True, old.read_bytes() if old.is_file() else b"", new.read_bytes()


def _exchange(place: TestPlace) -> bool:
    return _pair(place, "exchange", Rename.EXCHANGE) == (True, b"new", b"old")


def _noreplace(place: TestPlace) -> bool:
    return _pair(place, "noreplace", Rename.NOREPLACE) == (True, b"old", b"new")


def _whiteout(place: TestPlace) -> bool:
    done, _, new = _pair(place, "whiteout", Rename.WHITEOUT)
    old = place.directory / "whiteout-old"
    return done and new == b"old" and old.is_char_device()


TRIES = {"exchange": _exchange, "noreplace": _noreplace, "whiteout": _whiteout}
