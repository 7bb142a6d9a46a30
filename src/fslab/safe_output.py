"""Writes output: files that are replaced atomically, and standard output that loses no data. A terminal gets no
characters that it would obey.

Contains no format. ``untrusted_text`` and ``system.untrusted_files`` read files that others wrote.
"""

import contextlib
import errno
import io
import os
import stat
import sys
import tempfile
from pathlib import Path

from fslab import names
from fslab.errors import UsageError
from fslab.system import files, path_owners


def replace(path: Path, content: str | bytes) -> None:
    """Replace a file with ``content``. Raises UsageError if this fails; the old file then still exists. UnsafeError
    as ``check_place``.

    Writes a file with an unpredictable name in the same directory, then renames it. So a reader never sees a partial
    file, and a full disk does not damage the old one. In a directory where other users can write (``/tmp``), only
    symbolic links and pipes of the user and of root are used, and others are replaced. A pipe, ``/dev/stdout``, and a
    file in a directory that permits no new files are written to directly. A disk is refused.
    """
    try:
        _replace(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        hint = "write it to another place"
        raise UsageError(f"cannot be written: {error.strerror}", where=str(path), hint=hint) from error


def _replace(path: Path, data: bytes) -> None:
    if files.is_descriptor(path):  # replacing it would not change the file that another process has open
        _write(path, data, os.O_APPEND)
        return
    check_place(path)
    place = _followed(path)
    if _written_to_device(place, data):
        return
    try:
        _rename_over(place, data)
    except OSError as error:
        refused = error.errno in {errno.EACCES, errno.EPERM, errno.EBUSY}
        if not refused or place.is_symlink() or not place.is_file():
            raise
        _write(place, data, os.O_TRUNC | os.O_NOFOLLOW)


def check_place(path: Path, named_by: str = "--output") -> None:
    """Raise UnsafeError if root must not write a file of this name, because another user could put a link in the place
    of its directory."""
    if not files.is_descriptor(path):
        # Also where a link of root's lies: others can give it another name.
        for each in (path, _followed(path)):
            path_owners.check_closed(each.parent, named_by)


def make_directory(path: Path) -> None:
    """Create a directory for output, and those above it. UsageError if this fails, UnsafeError as ``check_place``."""
    try:
        path_owners.check_closed(path, "--output")
        files.make_directories(path)
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror}", where=str(path)) from error


def to_standard_output(content: str | bytes) -> None:
    """Write ``content`` to standard output."""
    data = content.encode() if isinstance(content, str) else content
    sys.stdout.flush()
    sys.stdout.buffer.write(_fit_for(data, terminal=sys.stdout.isatty()))
    sys.stdout.buffer.flush()


def buffer_standard_output() -> None:
    """Buffer standard output and standard error by line, if they have no buffer (``PYTHONUNBUFFERED``, set in many
    containers).

    Without a buffer, Python calls write(2) once and ignores a short write. On a disk that becomes full, the rest is
    lost without an error (TextIOWrapper over a raw stream).
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        raw = getattr(stream, "buffer", None)
        if isinstance(raw, io.RawIOBase):
            buffered = io.BufferedWriter(raw)
            setattr(sys, name, io.TextIOWrapper(buffered, encoding=stream.encoding, line_buffering=True))


def _followed(path: Path) -> Path:
    """Return the target of a symbolic link of the user or of root; the link itself if it belongs to another user."""
    trusted = path.is_symlink() and path.lstat().st_uid in {0, os.geteuid()}
    return Path(os.path.realpath(path)) if trusted else path  # resolve() fails on a loop


def _written_to_device(place: Path, data: bytes) -> bool:
    """Write to what is neither a file nor a link, such as a pipe, and return True; False if it is to be replaced."""
    try:
        # Judged and written to by one descriptor: others can exchange the name.
        with files.opened(place, os.O_PATH | os.O_NOFOLLOW) as found:
            about = os.fstat(found)
            if stat.S_ISBLK(about.st_mode):
                raise OSError(errno.EINVAL, "is a disk")
            if stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode) or _is_strange(about, place):
                return False
            _write(Path(f"/proc/self/fd/{found}"), data, os.O_APPEND)
            return True
    except FileNotFoundError:
        return False


def _is_strange(about: os.stat_result, place: Path) -> bool:
    """Return whether it is a pipe of another user, who would get what is written, or let the writer wait for ever; in a
    directory where only trusted users can make files, they meant it."""
    theirs = stat.S_ISFIFO(about.st_mode) and about.st_uid not in path_owners.trusted()
    return theirs and path_owners.stranger(place.parent, sticky=False) is not None


def _write(place: Path, data: bytes, flags: int) -> None:
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CLOEXEC | flags), "wb") as file:
        file.write(_fit_for(data, terminal=file.isatty()))


def _fit_for(data: bytes, *, terminal: bool) -> bytes:
    """Return the data; for a terminal, text without characters that it obeys: stored text can be another user's."""
    return names.shown(data.decode("utf-8", "replace")).encode() if terminal else data


def _rename_over(place: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=".fslab-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), _mode(place))
        Path(name).replace(place)
    finally:
        Path(name).unlink(missing_ok=True)


def _mode(place: Path) -> int:
    """Return the permissions of an existing file of the user; else those of a new file."""
    with contextlib.suppress(FileNotFoundError):
        there = place.lstat()
        if stat.S_ISREG(there.st_mode) and there.st_uid == os.geteuid():
            return there.st_mode & 0o777
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask
