"""Where fslab searches for programs: directories of PATH that other users cannot write to. Only reads.

A relative or empty entry means the current directory, which may be the one under test. A program in a directory that
another user owns or can write to would run with the rights of the user of fslab.
"""

import os
import sys
from functools import cache
from pathlib import Path

from fslab.system import path_owners

POSTGRESQL = Path("/usr/lib/postgresql")  # Debian keeps the programs of each version below it
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
LIBEXEC = "/usr/libexec"  # Fedora keeps MariaDB's server in it
DEFAULT = "/usr/bin:/bin"


def directories() -> tuple[str, ...]:
    """Return the directories in search order: that of the Python interpreter, with fslab's own programs; the trusted
    ones of PATH; sbin; those of servers that distributions keep out of PATH."""
    own = str(Path(sys.executable).parent)
    return (own, *trusted(os.environ.get("PATH", DEFAULT)), *SBIN, *_of_postgresql(), LIBEXEC)


@cache
def _of_postgresql() -> tuple[str, ...]:
    """Return the directories of the versions, the newest first."""
    found = [each for each in POSTGRESQL.glob("*/bin") if each.parent.name.isdigit()]
    return tuple(str(each) for each in sorted(found, key=lambda each: -int(each.parent.name)))


def refused() -> tuple[str, ...]:
    """Return the entries of PATH in which fslab does not search."""
    given = os.environ.get("PATH", DEFAULT)
    kept = trusted(given)
    return tuple(entry for entry in given.split(":") if entry not in kept)


@cache
def trusted(path: str) -> tuple[str, ...]:
    """Return the entries that are absolute, belong to the system or to the user, as do all directories above them, and
    are not writable for others. Under sudo, directories of its caller count as the user's."""
    return tuple(entry for entry in path.split(":") if _is_trusted(entry))


def _is_trusted(entry: str) -> bool:
    if not os.path.isabs(entry):  # noqa: PTH117 - a text that is no path is not absolute
        return False
    try:
        # One that does not exist might be created by another user.
        place = Path(entry)
        return place.is_dir() and not path_owners.stranger_on_the_way(place, sticky=False, groups=True)
    except (OSError, ValueError):
        return False
