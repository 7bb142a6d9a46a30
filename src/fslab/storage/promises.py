"""What a file system promises of a power cut, beyond what POSIX says of fsync(2). Declared by each driver.

What POSIX promises (data and size after fsync and fdatasync, everything after sync where it waits, as Linux does) is
no matter of the file system, and is not said here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """Whether it is given, and where the file system says so, or says that it is not."""

    given: bool
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Promises:
    """Of one file system with its options.

    ``consistent``: it mounts without repair, and its checker finds nothing. ``names``: fsync of a file keeps its names
    too (new, linked, renamed). ``directories``: fsync of a directory keeps what was made in it, also where the new file
    itself was not synced. ``rename``: a file that is renamed keeps its old or gets its new name, never neither.
    ``replace``: a name over which a new file is renamed has the old or the new contents, without fsync.
    ``unexposed``: a file never shows bytes of another one, or that were deleted.
    ``caution``: why options give up what POSIX promises on a disk with a volatile cache, in the words of their
    documentation; None: they do not.
    """

    consistent: Promise
    names: Promise
    directories: Promise
    rename: Promise
    replace: Promise
    unexposed: Promise
    caution: str | None = None
