"""Where programs are looked for: directories of PATH that others cannot write to. Looks only.

A relative or empty entry means the current directory, which may be the one under test. What lies in a directory that
others can write to, or in one of theirs, is run with the rights of whoever runs fslab.
"""

import os
import stat
import sys
from functools import cache
from pathlib import Path

SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
DEFAULT = "/usr/bin:/bin"


def directories() -> tuple[str, ...]:
    """In the order of search: our own programs, beside our interpreter; those of PATH that are trusted; sbin."""
    own = str(Path(sys.executable).parent)
    return (own, *trusted(os.environ.get("PATH", DEFAULT)), *SBIN)


def refused() -> tuple[str, ...]:
    """The entries of PATH in which nothing is looked for."""
    given = os.environ.get("PATH", DEFAULT)
    kept = trusted(given)
    return tuple(entry for entry in given.split(":") if entry not in kept)


@cache
def trusted(path: str) -> tuple[str, ...]:
    """The entries that are absolute and belong, with all above them, to the system or to the user, and that others
    cannot write to. The user's own are those of sudo's caller too."""
    owners = {0, os.geteuid(), os.stat("/").st_uid, *_caller()}  # noqa: PTH116
    return tuple(entry for entry in path.split(":") if _is_trusted(entry, owners))


def _caller() -> list[int]:
    given = os.environ.get("SUDO_UID", "")
    return [int(given)] if os.geteuid() == 0 and given.isdigit() else []


def _is_trusted(entry: str, owners: set[int]) -> bool:
    if not os.path.isabs(entry):  # noqa: PTH117 - a text that is no path is not absolute
        return False
    try:
        for name in {entry, os.path.realpath(entry)}:
            place = Path(name)
            if not _is_closed(place, owners) or not all(
                _is_closed(above, owners, sticky=True) for above in place.parents
            ):
                return False
    except (OSError, ValueError):
        return False  # not there: whoever makes it decides what is in it
    return True


def _is_closed(directory: Path, owners: set[int], *, sticky: bool = False) -> bool:
    """Whether others can put nothing there, or with ``sticky`` exchange nothing."""
    about = directory.stat()
    if about.st_uid not in owners or not stat.S_ISDIR(about.st_mode):
        return False
    return not about.st_mode & stat.S_IWOTH or (sticky and bool(about.st_mode & stat.S_ISVTX))
