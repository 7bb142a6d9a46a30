"""Where fslab searches for programs: directories of PATH that other users cannot write to. Only reads.

A relative or empty entry means the current directory, which may be the one under test. A program that another user owns
or can write to, or that lies in such a directory, would run with the rights of the user of fslab.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from functools import cache, lru_cache
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
    others = ":".join((*SBIN, *_of_postgresql(), LIBEXEC))
    return (own, *trusted(os.environ.get("PATH", DEFAULT)), *trusted(others))


def found(name: str) -> tuple[str | None, str | None]:
    """Return the path of the program that a search for ``name`` finds, and who besides trusted users can change it."""
    return _found(":".join(directories()), name)


def safe(name: str) -> str | None:
    """Return the path of a program; None if it is not found, or if another user can change it."""
    path, why = found(name)
    return None if why else path


@lru_cache(maxsize=1024)
def _found(path: str, name: str) -> tuple[str | None, str | None]:
    program = shutil.which(name, path=path)
    if program is None:
        return None, None
    try:
        return program, path_owners.stranger_on_the_way(Path(program), groups=_groups())
    except OSError as error:
        return program, f"it is not known who can write to {error.filename} ({error.strerror})"


def changeable(words: Sequence[str]) -> str | None:
    """Return, in words, which word of a command names a program that another user can change, and who; None if none
    does.

    Each word counts, not only the first: a program such as env(1) or setpriv(1) looks for the next one in PATH, and
    which of its arguments a program takes for one is not known.
    """
    for position, word in enumerate(words):
        if word and "/" not in word and word[0] != "-" and (why := found(word)[1]):
            names = (
                f"its argument '{word}' is also the name of a program"
                if position
                else f"'{word}' is a program"
            )
            return f"{names} that another user can change: {why}"
    return None


@cache
def _of_postgresql() -> tuple[str, ...]:
    """Return the directories of the versions, the newest first."""
    found = [each for each in POSTGRESQL.glob("*/bin") if each.parent.name.isdigit()]
    return tuple(str(each) for each in sorted(found, key=lambda each: -int(each.parent.name)))


def passed_over(name: str) -> tuple[str, str] | None:
    """Return the path of the program that is not run although PATH leads to it, and why; None if there is none."""
    path, why = found(name)
    if path and why:
        return path, why
    for entry in os.environ.get("PATH", DEFAULT).split(":"):
        if (why := _untrusted(entry)) and (path := shutil.which(name, path=entry)):
            return path, why
    return None


@cache
def trusted(path: str) -> tuple[str, ...]:
    """Return the entries that are absolute, belong to the system or to the user, as do all directories above them, and
    are not writable for others. Under sudo, directories of its caller count as the user's."""
    return tuple(entry for entry in path.split(":") if _untrusted(entry) is None)


def _untrusted(entry: str) -> str | None:
    """Return why an entry of PATH is not searched; None if it is."""
    if not os.path.isabs(entry):  # noqa: PTH117 - a text that is no path is not absolute
        return f"the entry '{entry}' of PATH depends on the current directory"
    try:
        # One that does not exist might be created by another user.
        place = Path(entry)
        if not place.is_dir():
            return f"{entry} is not a directory"
        return path_owners.stranger_on_the_way(place, sticky=False, groups=_groups())
    except (OSError, ValueError) as error:
        return f"it is not known who can write to {entry} ({error})"


def _groups() -> path_owners.Groups:
    return path_owners.Groups.WITHOUT_OTHERS if os.geteuid() == 0 else path_owners.Groups.ANY
