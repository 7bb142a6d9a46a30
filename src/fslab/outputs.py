"""What a user wants to have: files put in their place whole or not at all, and standard output that loses nothing.

Knows no format. Files that others wrote are ``texts``' and ``system.untrusted_files``' matter.
"""

import io
import os
import sys
import tempfile
from pathlib import Path


def replace(path: Path, content: str | bytes) -> None:
    """Put ``content`` in the place of the file; OSError if that cannot be, and then what was there is still there.

    Written beside it under a name that nobody can foresee, then renamed: a reader never meets half of it, a full disk
    takes nothing away, and where others may write (``/tmp``) no link of theirs is followed. A link of the user's own
    is. What cannot be renamed over (a pipe, ``/dev/stdout``) is written to.
    """
    data = content.encode() if isinstance(content, str) else content
    place = _followed(path)
    if place.exists() and not place.is_file():
        place.write_bytes(data)
        return
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), _mode(place))
        Path(name).replace(place)
    finally:
        Path(name).unlink(missing_ok=True)


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
    """Where a link leads that is the user's own; the link itself if it is somebody else's."""
    own = path.is_symlink() and path.lstat().st_uid == os.geteuid()
    return path.resolve() if own else path


def _mode(path: Path) -> int:
    """The permissions of the file that is there; else those of a new one."""
    try:
        return path.stat(follow_symlinks=False).st_mode & 0o777
    except OSError:
        umask = os.umask(0o077)
        os.umask(umask)
        return 0o666 & ~umask
