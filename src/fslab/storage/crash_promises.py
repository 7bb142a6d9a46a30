"""The promises of a file system for a power cut, beyond those of POSIX for fsync(2). Each driver declares its own.

The promises of POSIX hold for every file system and are not declared here: data and size are kept after fsync and
fdatasync, everything is kept after sync, which waits on Linux.
"""

from __future__ import annotations

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
    contains bytes of another file, or deleted bytes. ``caution``: why the options void the promises of POSIX on a
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
    caution: str | None = None


_GIVEN = kept("")
EVERY_PROMISE = Promises(
    consistent=_GIVEN, names=_GIVEN, attributes=_GIVEN, directories=_GIVEN, removal=_GIVEN, rename=_GIVEN,
    replace=_GIVEN, unexposed=_GIVEN,
)  # fmt: skip
