"""Untrusted text: reads it with limits (JSON of tools and guests, files that a user named), and escapes it."""

import errno
import json
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fslab.system import path_walk
from fslab.system.files import closed_after, is_descriptor, opened

_MANY_DIGITS, _MANY_DIGITS_BYTES = re.compile(r"[0-9]{19}"), re.compile(rb"[0-9]{19}")
LONGEST_INTEGER = 20  # characters: 64 bits


def json_of(text: str | bytes) -> Any:
    """Return the parsed value. Raises ValueError for invalid JSON, and for JSON that is nested too deeply or contains
    an integer of more than 64 bits: floats, databases and str() have limits for integers."""
    long = _MANY_DIGITS.search(text) if isinstance(text, str) else _MANY_DIGITS_BYTES.search(text)
    try:
        return json.loads(text, parse_int=_integer) if long else json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def first_json(text: str, start: int = 0) -> Any:
    """Return the value that begins at ``start``; ignores the text after it. Raises ValueError like ``json_of``.

    Control characters in strings are accepted: fio writes those of its options as they are.
    """
    try:
        value, _ = json.JSONDecoder(parse_int=_integer, strict=False).raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"the number {digits[:LONGEST_INTEGER]}… has more than 64 bits")
    return int(digits)


def of_file(path: Path, *, limit_bytes: int) -> str:
    """Return the text of a regular file that the user named, or of an open descriptor, as /dev/stdin.

    Raises OSError (EINVAL for another file, EFBIG if it is larger than the limit), UnicodeDecodeError if it is not
    UTF-8.
    """
    # O_PATH: opening a device or a pipe can do harm, or block. What is opened then is what was checked.
    with opened(path, os.O_PATH) as found:
        if not is_descriptor(path):
            _size_of_regular(found, path)
        return _text_of(found, path, limit_bytes)


def of_file_below(path: Path, places: Iterable[Path], *, limit_bytes: int) -> str:
    """Return the text of a regular file that lies, with all links resolved, in one of these directories or below.

    ``places``: without links. Raises OSError, before anything is read: EXDEV, with the file's real path, if it lies
    elsewhere; EINVAL if it is not a regular file; ELOOP if a link of /proc leads to it. Else as ``of_file``.

    A file without a size counts as empty: the kernel makes such ones as they are read, as /proc/kmsg, which blocks and
    takes its messages from others.
    """
    # As ``of_file``. In a mount namespace of another user, any file can have a name in one of these directories.
    with closed_after(path_walk.opened(path)) as found:
        real = Path(f"/proc/self/fd/{found}").readlink()
        if not any(real.is_relative_to(place) for place in places):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(real))
        return _text_of(found, path, limit_bytes) if _size_of_regular(found, path) else ""


def _size_of_regular(descriptor: int, path: Path) -> int:
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return about.st_size


def _text_of(descriptor: int, path: Path, limit_bytes: int) -> str:
    with Path(f"/proc/self/fd/{descriptor}").open("rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content.decode("utf-8-sig")  # editors of Windows write a mark first


def as_markdown(text: str) -> str:
    """Return text in which no character has a meaning in a Markdown table."""
    plain = " ".join(text.split())
    return "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in plain)
