"""Directory trees of any depth, which others may have made: a tool in its work directory, a guest in its shared one.

Python's os.walk and shutil.rmtree need a frame of the stack, or a descriptor, per level. Must not follow a link, nor go
into what is mounted in a tree.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fslab.system.files import closed_after, opened

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ALL = stat.S_IRWXU
_PATH_MAX = 4096


@dataclass(kw_only=True, slots=True)
class _Level:
    """A directory on the way down. ``left``: the names of its directories that were not entered yet."""

    name: str
    identity: tuple[int, int]
    left: list[str]


def remove(path: Path) -> None:
    """Remove a file, or a directory with all its contents; of a link, only the link itself. It need not exist.

    Removes directories that their owner may not enter. OSError for the first thing that cannot be removed, after the
    others were.
    """
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    errors: list[OSError] = []
    here = os.open(path.parent, _DIRECTORY)
    levels = [_Level(name="", identity=_identity(os.fstat(here)), left=[path.name])]
    try:
        while (level := levels[-1]).left or len(levels) > 1:
            if level.left:
                with _noted(errors):
                    descriptor, inner = _entered(level.left.pop(), here)
                    os.close(here)
                    here = descriptor
                    levels.append(inner)
                    inner.left += _emptied(here, errors)
            else:
                levels.pop()
                above = _above(here, levels[-1])
                os.close(here)
                here = above
                with _noted(errors):
                    os.rmdir(level.name, dir_fd=here)
    finally:
        os.close(here)
    if errors:
        raise OSError(errors[0].errno, errors[0].strerror, str(path)) from errors[0]


def files(directory: Path) -> Iterator[tuple[int, str]]:
    """Yield the regular files of a tree: the descriptor of the directory, which is closed afterwards, and the name.
    What may not be read is left out, and what has a path that the kernel does not take at once.

    Each directory is opened from the top: another process can put a link in the place of one on the way.
    """
    left: list[tuple[str, ...]] = [()]
    with opened(directory, _DIRECTORY) as top:
        while left:
            way = left.pop()
            with contextlib.ExitStack() as undo:
                try:
                    here = undo.enter_context(closed_after(_reached(top, way)))
                    found = list(undo.enter_context(os.scandir(here)))
                except OSError:
                    continue
                yield from ((here, entry.name) for entry in found if entry.is_file(follow_symlinks=False))
                inner = [(*way, entry.name) for entry in found if entry.is_dir(follow_symlinks=False)]
            left += [each for each in reversed(inner) if sum(map(len, each)) + len(each) < _PATH_MAX]


def _reached(top: int, way: Iterable[str]) -> int:
    here = os.open(".", _DIRECTORY, dir_fd=top)
    for name in way:
        with closed_after(here):
            here = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
    return here


def _emptied(directory: int, errors: list[OSError]) -> list[str]:
    """Remove what is no directory. Return the names of the directories, the first one last."""
    with os.scandir(directory) as entries:
        found = list(entries)
    inner = []
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            inner.append(entry.name)
        else:
            with _noted(errors):
                os.unlink(entry.name, dir_fd=directory)
    return inner[::-1]


def _entered(name: str, directory: int) -> tuple[int, _Level]:
    """Open an inner directory. OSError for a link and for a mount point."""
    with opened(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory) as found:
        about = os.fstat(found)
        if mount_of(found) != mount_of(directory):
            raise OSError(errno.EBUSY, "something is mounted there", name)
        if about.st_mode & _ALL != _ALL:
            os.chmod(f"/proc/self/fd/{found}", _ALL)  # noqa: PTH101 - that very directory
        return os.open(".", _DIRECTORY, dir_fd=found), _Level(name=name, identity=_identity(about), left=[])


def _above(directory: int, outer: _Level) -> int:
    """Open the directory above. OSError if the inner one was moved meanwhile."""
    above = os.open("..", _DIRECTORY, dir_fd=directory)
    if _identity(os.fstat(above)) != outer.identity:
        os.close(above)
        raise OSError(errno.ESTALE, "a directory was moved while it was removed")
    return above


def mount_of(descriptor: int) -> str:
    """Return the mount that a file lies on, proc_pid_fdinfo(5). Device numbers also differ between btrfs subvolumes."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii").splitlines()
    return next(line for line in lines if line.startswith("mnt_id:"))


def _identity(about: os.stat_result) -> tuple[int, int]:
    return about.st_dev, about.st_ino


@contextlib.contextmanager
def _noted(errors: list[OSError]) -> Iterator[None]:
    """Keep the first error. What is gone already needs no removal."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        if not errors:
            errors.append(error)
