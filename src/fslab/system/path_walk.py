"""Follows a path one component after the other, with a descriptor of each, as the kernel does (path_resolution(7)).

What is judged by a descriptor is what was reached: others can exchange a name between two calls. Judges nothing.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from fslab.system import syscalls

PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40  # as the kernel
# Links of /proc that lead where their text says. The kernel follows all others to an open file or to another root
# directory, whatever their text is: proc_pid_root(5), proc_pid_cwd(5), proc_pid_fd(5).
_BY_TEXT = re.compile(r"\d+(/task/\d+)?|self/\w+")


@dataclass(frozen=True, kw_only=True, slots=True)
class PathStep:
    """A directory, link or file. ``path``: its name without links. ``descriptor``: opened with O_PATH."""

    path: Path
    descriptor: int
    about: os.stat_result

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.about.st_mode)


def steps(path: Path, *, existing: bool = False) -> Generator[PathStep, None, None]:
    """Yield the root directory, each directory and each link on the way, and last what ``path`` leads to. After a link,
    the directory in which its text begins comes again.

    The descriptor is closed after its step. OSError as of open(2), such as FileNotFoundError at the first component
    that does not exist (with ``existing``, it ends there); ELOOP also at a link of /proc that can lead into another
    mount namespace.
    """
    whole = path if path.is_absolute() else Path.cwd() / path  # the current directory may be removed
    where, rest, links = Path("/"), [*reversed(whole.parts[1:])], 0
    here = os.open("/", PLACE)
    try:
        yield PathStep(path=where, descriptor=here, about=os.fstat(here))
        while rest:
            name = rest.pop()
            step = where.parent if name == ".." else where / name
            found = _opened(name, here, step, existing=existing)
            if found is None:
                return
            try:
                about = os.fstat(found)
                yield PathStep(path=step, descriptor=found, about=about)
                if not stat.S_ISLNK(about.st_mode):
                    where, here, found = step, found, here
                    continue
                links += 1
                target = _target(found, here, step, links)
                rest += reversed(target.parts[target.is_absolute() :])
                if target.is_absolute():
                    root = os.open("/", PLACE)
                    os.close(here)
                    where, here = Path("/"), root
                yield PathStep(path=where, descriptor=here, about=os.fstat(here))
            finally:
                os.close(found)
    finally:
        os.close(here)


def _opened(name: str, directory: int, step: Path, *, existing: bool) -> int | None:
    try:
        try:
            # An automounted directory is mounted only where a directory is asked for (open(2), O_PATH).
            return os.open(name, PLACE | os.O_DIRECTORY, dir_fd=directory)
        except NotADirectoryError:
            return os.open(name, PLACE, dir_fd=directory)
    except OSError as error:
        if existing and isinstance(error, (FileNotFoundError, NotADirectoryError)):
            return None
        raise OSError(error.errno, error.strerror, str(step)) from error


def _target(link: int, directory: int, step: Path, links: int) -> Path:
    text = os.readlink("", dir_fd=link)
    # Of the directory: QEMU's server of 9p opens what it is asked about, and no link (ELOOP).
    of_proc = syscalls.filesystem_type(directory) == syscalls.PROC_SUPER_MAGIC
    if links > _MOST_LINKS or (of_proc and not _BY_TEXT.fullmatch(text)):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(step))
    return Path(text)


def opened(path: Path) -> int:
    """Return a descriptor (O_PATH) of what ``path`` leads to in this mount namespace. OSError as of ``steps``."""
    descriptor = -1
    with contextlib.closing(steps(path)) as way, contextlib.ExitStack() as kept:
        for step in way:
            kept.close()
            descriptor = os.dup(step.descriptor)
            kept.callback(os.close, descriptor)
        kept.pop_all()
    return descriptor
