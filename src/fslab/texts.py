"""Text that others wrote, read so far and no further: JSON of tools and guests, files that a user named."""

import errno
import json
import os
from pathlib import Path
from typing import Any


def json_of(text: str | bytes) -> Any:
    """The value; ValueError for anything that is none, also for one that is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def first_json(text: str, start: int = 0) -> Any:
    """The value that begins at ``start``, whatever follows it. ValueError as from ``json_of``."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def of_file(path: Path, *, limit_bytes: int) -> str:
    """The text of a file that the user named: any kind of file, but no more than the limit (OSError, EFBIG).

    UnicodeDecodeError if it is not UTF-8.
    """
    with path.open("rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content.decode("utf-8")
