"""Recordings of broken promises are kept, so that each of their states can be made again: one directory for each."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fslab import texts
from fslab.crash import examine, operations
from fslab.crash.examine import Subject
from fslab.crash.operations import Sequence
from fslab.crash.recording import Recording
from fslab.errors import StoreError
from fslab.storage.filesystems import REGISTRY

ABOUT = "about.json"
MOST = 20
ID_DIGITS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A recording, the file system it is of, and its sequences."""

    recording: Recording
    tested: Subject
    sequences: tuple[Sequence, ...]


def keep(recording: Recording, tested: Subject, sequences: tuple[Sequence, ...], home: Path) -> str:
    """Copy it below ``home`` and return its id; the oldest beyond ``MOST`` go."""
    identity = sha256(recording.log.read_bytes()).hexdigest()[:ID_DIGITS]
    place = home / identity
    if not place.exists():
        place.mkdir(parents=True, mode=0o700)
        copy = recording.kept_in(place)
        about = {
            "version": 1, "filesystem": tested.driver.name, "options": tested.options, "root": tested.root,
            "base": copy.base.name, "log": copy.log.name, "sequences": [list(map(str, steps)) for steps in sequences],
        }  # fmt: skip
        (place / ABOUT).write_text(json.dumps(about))
    for old in sorted(home.iterdir(), key=lambda path: path.stat().st_mtime)[:-MOST]:
        shutil.rmtree(old)
    return identity


def load(identity: str, home: Path) -> Kept:
    """The recording of this id; StoreError if there is none."""
    place = home / identity
    try:
        about = texts.json_of((place / ABOUT).read_text())
    except OSError as error:
        known = ", ".join(sorted(path.name for path in home.iterdir())) if home.is_dir() else ""
        raise StoreError(
            f"no recording '{identity}' is kept", where=str(home),
            hint=f"known: {known}" if known else "they are kept when a promise is broken",
        ) from error  # fmt: skip
    recording = Recording(base=place / about["base"], log=place / about["log"])
    driver = REGISTRY.get(about["filesystem"])
    tested = examine.subject(driver, about["options"], about["root"], recording.base)
    sequences = tuple(operations.parse(steps) for steps in about["sequences"])
    return Kept(recording=recording, tested=tested, sequences=sequences)
