"""What a file system promises for a power cut, beyond what POSIX says about fsync(2). Declared by each driver.

Promises of POSIX hold for every file system and are not declared here: data and size after fsync and fdatasync, and
everything after sync, which waits on Linux.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """Whether the promise is given, and the source for that."""

    given: bool
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Promises:
    """Of one file system with its options.

    ``consistent``: it mounts without repair, and its checker finds nothing. ``names``: fsync of a file keeps its names
    too (new, linked, renamed), ``attributes``: its extended attributes. ``directories``: fsync of a directory keeps
    what was made in it, also where the new file itself was not synced. ``rename``: a file that is renamed keeps its old
    or gets its new name, never neither.
    ``replace``: a name over which a new file is renamed has the old or the new contents, without fsync.
    ``unexposed``: a file never shows bytes of another one, or that were deleted.
    ``caution``: why options give up what POSIX promises on a disk with a volatile cache, in the words of their
    documentation; None: they do not.
    """

    consistent: Promise
    names: Promise
    attributes: Promise
    directories: Promise
    rename: Promise
    replace: Promise
    unexposed: Promise
    caution: str | None = None
