"""The promises of a file system for a power cut, beyond those of POSIX for fsync(2). Each driver declares its own.

The promises of POSIX hold for every file system and are not declared here: data and size are kept after fsync and
fdatasync, everything is kept after sync, which waits on Linux.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """Whether a promise is given, and the source of this information."""

    given: bool
    source: str


def kept(source: str) -> Promise:
    """Return a promise that is given."""
    return Promise(given=True, source=source)


@dataclass(frozen=True, kw_only=True, slots=True)
class Promises:
    """The promises of a file system with its options.

    ``consistent``: it mounts without repair, and its checker finds nothing. ``names``: fsync of a file also keeps
    its names (new, linked, renamed). ``attributes``: fsync of a file also keeps its extended attributes.
    ``directories``: fsync of a directory keeps its new entries, even if the new files were not synced. ``removal``:
    fsync of a file keeps the removal of its names: old ones of a renamed file, removed links, and the last one of
    an open file. ``rename``: a renamed file has its old or its new name, never none. ``replace``: if a new file is
    renamed over a name, the name has the old or the new contents, without fsync. ``unexposed``: a file never
    contains bytes of another file, or deleted bytes. ``at_once``: names that an operation made, changed or removed are
    durable when it returns, without fsync. ``caution``: why the options void the promises of POSIX on a
    disk with a volatile cache, from their documentation; None: they do not.
    """

    consistent: Promise
    names: Promise
    attributes: Promise
    directories: Promise
    removal: Promise
    rename: Promise
    replace: Promise
    unexposed: Promise
    at_once: Promise = Promise(given=False, source="mount(8): btrfs is not named among those that heed sync")
    caution: str | None = None


def at_once(mount_options: Collection[str], option: str = "dirsync", document: str = "mount(8)") -> Promise:
    """Return the promise of options that make directory updates synchronous: also one of the file system's own."""
    given = bool({"dirsync", "sync", option} & set(mount_options))
    return Promise(
        given=given, source=f"{document}, {option}; mount(8), dirsync, sync: synchronous updates of names"
    )


_GIVEN = kept("")
EVERY_PROMISE = Promises(
    consistent=_GIVEN, names=_GIVEN, attributes=_GIVEN, directories=_GIVEN, removal=_GIVEN, rename=_GIVEN,
    replace=_GIVEN, unexposed=_GIVEN, at_once=_GIVEN,
)  # fmt: skip
