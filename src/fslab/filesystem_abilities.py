"""What a workload needs from a file system, and what a file system does not support.

A plan uses this to report impossible cells before anything is created. A run tests the rest on the file system itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fslab.units import format_size


class Ability(StrEnum):
    """Something that most file systems support and some do not. The value is its name in messages."""

    DIRECT_READS = "direct reads"
    DIRECT_WRITES = "direct writes"
    FALLOCATE = "fallocate"
    HARD_LINKS = "hard links"
    SYMLINKS = "symbolic links"
    PERMISSIONS = "owners and permissions"
    CHOWN = "chown to the user 'nobody'"
    SOCKETS = "sockets"
    XATTR = "extended attributes"
    SPARSE = "sparse files"
    REFLINK = "reflinks"
    CASE = "names that differ only in case"
    COLON = "names with ':'"
    OVERLAY = "overlayfs on top"
    PROMISES = "known promises for a power cut, and a checker"


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """The requirements of a workload. ``largest_file_bytes``: the size of the largest file that it creates."""

    abilities: frozenset[Ability] = frozenset()
    largest_file_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a file system does not support, with the reason. ``largest_file_bytes``: None if larger than any device."""

    lacks: Mapping[Ability, str] = field(default_factory=dict)
    largest_file_bytes: int | None = None

    def why_not(self, needs: Needs) -> str | None:
        """Return why the file system does not meet the requirements; None if it does."""
        for ability in sorted(needs.abilities):
            if ability in self.lacks:
                reason = self.lacks[ability]
                return f"it needs {ability}{f': {reason}' if reason else ''}"
        if self.largest_file_bytes is not None and needs.largest_file_bytes > self.largest_file_bytes:
            bound = format_size(self.largest_file_bytes + 1)
            return f"it needs a file of {format_size(needs.largest_file_bytes)}; files must be smaller than {bound}"
        return None
