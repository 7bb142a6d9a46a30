"""Keep recordings of broken promises, one directory for each, so that each of their states can be made again."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from fslab import names, untrusted_text
from fslab.cell import MachineSpec
from fslab.crash import examine
from fslab.crash.application_runs import Runs
from fslab.crash.examine import Subject
from fslab.crash.recording import Recording
from fslab.crash.sequences import Sequences
from fslab.crash.sources import Source
from fslab.errors import FslabError, NoSpaceError, StoreError
from fslab.storage.filesystem_options import not_shown
from fslab.storage.filesystems import REGISTRY
from fslab.system import disk_server, files, memory, path_owners, untrusted_files
from fslab.units import format_size

ABOUT = "about.json"
VERSION = 2  # what the files of a sequence hold at its start, and the forms of its steps
ABOUT_BYTES = 16 << 20
MOST = 20
_MOST_BYTES = 1 << 30  # of each file but the first image, of which only what is not a hole is copied
ID_DIGITS = 8
_ID = re.compile(rf"[0-9a-f]{{{ID_DIGITS}}}")

log = logging.getLogger("fslab.crash")


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptRecording:
    """A recording, its file system, and the source of its runs. ``machine``: the guest that made it, without its
    kernel, which is a program: a recording does not choose one. ``kernel``: the version of that."""

    recording: Recording
    tested: Subject
    source: Source[Any]
    machine: MachineSpec | None = None
    kernel: str = ""


def keep(recording: Recording, tested: Subject, source: Source[Any], home: Path) -> str | None:
    """Copy the recording below ``home`` and return its id. Remove the oldest recordings beyond ``MOST``, nothing else.

    If the copy fails, for example without space, log a warning and return None: the findings matter more than the
    recording.
    """
    identity = _identity(recording.log)
    place = home / identity
    try:
        files.make_directories(home)
        try:
            if not (place / ABOUT).exists():
                _copy(recording, tested, source, place)
        except (OSError, FslabError):
            shutil.rmtree(place, ignore_errors=True)
            raise
    except (OSError, FslabError) as error:
        log.warning("cannot keep the recording for fslab crash replay: %s", error)
        return None
    _remove_older(identity, home)
    return identity


def take_over(given: int, identity: str, made_in: Mapping[str, str | None], home: Path) -> None:
    """Keep a recording that a guest left in the directory open as ``given``, which may hold anything. ``made_in``: the
    guest.

    If it cannot be copied, log a warning.
    """
    if not _ID.fullmatch(identity) or (home / identity).exists():
        return
    try:
        files.make_directories(home)
        _take_files(given, identity, made_in, home / identity)
    except (OSError, ValueError, KeyError, TypeError, FslabError) as error:
        shutil.rmtree(home / identity, ignore_errors=True)
        log.warning("cannot keep the recording for fslab crash replay: %s", error)
    else:
        _remove_older(identity, home)


def _take_files(given: int, identity: str, made_in: Mapping[str, str | None], place: Path) -> None:
    text = untrusted_files.read(f"{identity}/{ABOUT}", limit_bytes=ABOUT_BYTES, beneath=given)
    about = untrusted_text.json_of(text)
    recording = Recording(base=place / names.word(about["base"]), log=place / names.word(about["log"]))
    place.mkdir(mode=0o700)
    for file in recording.files():
        with untrusted_files.regular(f"{identity}/{file.name}", given) as source:
            if os.fstat(source).st_size > _MOST_BYTES and file != recording.base:
                raise ValueError(f"'{file.name}' is too large")  # it is read as a whole
            files.copy_data(source, file)
    _write_about({**about, "made_in": dict(made_in)}, place)


def _remove_older(kept: str, home: Path) -> None:
    # Without this one: while the clock was ahead, others got a later time.
    others = [each for each in identities(home) if each != kept]
    for old in others[: 1 - MOST]:
        shutil.rmtree(home / old, ignore_errors=True)


def _copy(recording: Recording, tested: Subject, source: Source[Any], place: Path) -> None:
    if place.exists():
        shutil.rmtree(place)  # left by an interrupted run
    place.mkdir(mode=0o700)
    copy = recording.kept_in(place)
    about = {
        "version": VERSION, "filesystem": tested.driver.name, "options": tested.options, "root": tested.root,
        "base": copy.base.name, "log": copy.log.name, **source.stored(),
    }  # fmt: skip
    _write_about(about, place)


def _write_about(about: Mapping[str, Any], place: Path) -> None:
    new = place / f"{ABOUT}.new"
    new.write_text(json.dumps(about))
    new.rename(place / ABOUT)  # last: a directory without it is not a recording


def identities(home: Path) -> list[str]:
    """Return the ids of the recordings below ``home``, the oldest first."""
    if not home.is_dir():
        return []
    ours = [path for path in home.iterdir() if _ID.fullmatch(path.name) and not path.is_symlink()]
    times = {path: (path / ABOUT).stat().st_mtime_ns for path in ours if (path / ABOUT).is_file()}
    return [path.name for path in sorted(times, key=lambda path: (times[path], path.name))]


def load(identity: str, home: Path) -> KeptRecording:
    """Return the recording with this id. StoreError if it does not exist, is damaged or was changed; NoSpaceError if it
    does not fit into memory."""
    known = identities(home)
    if identity not in known:
        raise StoreError(
            f"no recording '{identity}'",
            where=str(home),
            hint=f"known: {', '.join(known)}" if known else "a recording is kept when a promise is broken",
        )
    try:
        return _loaded(home / identity, identity)
    except NoSpaceError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, FslabError) as error:
        raise StoreError(
            f"the recording '{identity}' is damaged: {error}",
            where=str(home / identity),
            hint="remove this directory",
        ) from error


def _loaded(place: Path, identity: str) -> KeptRecording:
    _check_files(place)
    about = untrusted_text.json_of(untrusted_text.of_file(place / ABOUT, limit_bytes=ABOUT_BYTES))
    if about["version"] != VERSION:
        raise ValueError("another version of fslab made it")
    base, log = (place / names.word(about[name]) for name in ("base", "log"))
    recording = Recording(base=base, log=log)
    _check_memory(recording)
    if _identity(log) != identity:
        raise ValueError("its log was changed")
    if base.stat().st_size != disk_server.size_in_log(log):  # what is missing would count as zeros
        raise ValueError("its first image does not have the size of the disk: copy the recording again")
    driver = REGISTRY.get(about["filesystem"])
    if (option := not_shown(about["options"])) is not None:
        raise ValueError(f"'{option}' is not an option of a mounted file system")
    root = PurePosixPath(about["root"])
    if root.is_absolute() or ".." in root.parts:
        raise ValueError(f"'{root}' is not below its file system")
    tested = examine.subject(driver, about["options"], str(root), base)
    source: Source[Any] = Runs.loaded(about) if "application" in about else Sequences.loaded(about)
    recording.table()
    if (made_in := about.get("made_in")) is None:
        return KeptRecording(recording=recording, tested=tested, source=source)
    kernel = names.shown(str(made_in["kernel"]))
    machine = MachineSpec(type=names.word(made_in["machine"]), memory=made_in["memory"])
    return KeptRecording(recording=recording, tested=tested, source=source, machine=machine, kernel=kernel)


def _check_files(place: Path) -> None:
    """Raise ValueError or UnsafeError unless it holds only regular files, which no other user can exchange.

    A directory that was copied from elsewhere can have a link to a file of root's, which the image of a state would
    show to others, or a pipe, which would block.
    """
    path_owners.check_closed(place, sticky=False)
    for file in place.iterdir():
        if not stat.S_ISREG(file.lstat().st_mode):
            raise ValueError(f"'{file.name}' is not a regular file")
        if os.geteuid() == 0 and (why := path_owners.stranger(file)):
            raise ValueError(why)


def _check_memory(recording: Recording) -> None:
    """Raise NoSpaceError unless its files fit into memory: they are read as a whole, of the first image what is not a
    hole. One that was copied from elsewhere can have huge files that take no space on the disk."""
    found = {file: file.stat() for file in recording.files()}
    needed = sum(
        about.st_blocks * 512 if file == recording.base else about.st_size for file, about in found.items()
    )
    available = memory.available_bytes()
    if available is not None and needed > available:
        raise NoSpaceError(
            f"the recording needs {format_size(needed)} of memory, and {format_size(available)} are available",
            where=str(recording.log.parent),
            hint="free memory, or if no disk can have recorded so much, remove this directory",
        )


def _identity(log: Path) -> str:
    return sha256(log.read_bytes()).hexdigest()[:ID_DIGITS]
