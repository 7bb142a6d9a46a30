"""What a user wants to have: files put in their place whole or not at all, and standard output that loses nothing.

Knows no format. Files that others wrote are ``texts``' and ``system.untrusted_files``' matter.
"""

import errno
import io
import os
import sys
import tempfile
from pathlib import Path


def replace(path: Path, content: str | bytes) -> None:
    """Put ``content`` in the place of the file; OSError if that cannot be, and then what was there is still there.

    Written beside it under a name that nobody can foresee, then renamed: a reader never meets half of it, a full disk
    takes nothing away, and where others may write (``/tmp``) no link of theirs is followed, only the user's own and
    root's. A pipe, ``/dev/stdout`` and a file whose directory permits no other file are written to as they are.
    """
    data = content.encode() if isinstance(content, str) else content
    place = _followed(path)
    if not place.is_symlink() and (_is_stream(path) or (place.exists() and not place.is_file())):
        _write(path, data, os.O_APPEND)
        return
    try:
        _rename_over(place, data)
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.EBUSY} or not _is_plain(place):
            raise
        _write(place, data, os.O_TRUNC | os.O_NOFOLLOW)


def buffer_standard_output() -> None:
    """Write line by line instead of without a buffer (``PYTHONUNBUFFERED``, set in many containers).

    Without one Python writes once and takes no notice of what was not written: on a disk that gets full the rest is
    lost without an error (TextIOWrapper over a raw stream).
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        raw = getattr(stream, "buffer", None)
        if isinstance(raw, io.RawIOBase):
            buffered = io.BufferedWriter(raw)
            setattr(sys, name, io.TextIOWrapper(buffered, encoding=stream.encoding, line_buffering=True))


def _followed(path: Path) -> Path:
    """Where a link leads that is the user's own or root's; the link itself if it is somebody else's."""
    trusted = path.is_symlink() and path.lstat().st_uid in {0, os.geteuid()}
    return Path(os.path.realpath(path)) if trusted else path  # resolve() fails on a loop


def _is_stream(path: Path) -> bool:
    """Whether it is a name of a descriptor: the file behind it is somebody's who has it open."""
    return path.is_relative_to("/dev") or path.is_relative_to("/proc")


def _is_plain(place: Path) -> bool:
    return not place.is_symlink() and place.is_file()


def _write(place: Path, data: bytes, flags: int) -> None:
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CLOEXEC | flags), "wb") as file:
        file.write(data)


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
    """The permissions of the file that is there, if it is the user's own; else those of a new one."""
    if _is_plain(place) and (there := place.stat()).st_uid == os.geteuid():
        return there.st_mode & 0o777
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask
