"""Untrusted text: reads it with limits (JSON of tools and guests, files that a user named), and escapes it."""

import errno
import json
import os
from pathlib import Path
from typing import Any


def json_of(text: str | bytes) -> Any:
    """Return the parsed value. Raises ValueError for invalid JSON, and for JSON that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def first_json(text: str, start: int = 0) -> Any:
    """Return the value that begins at ``start``; ignores the text after it. Raises ValueError like ``json_of``."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def of_file(path: Path, *, limit_bytes: int) -> str:
    """Return the text of a file of any type that the user named.

    Raises OSError (EFBIG) if it is larger than the limit, UnicodeDecodeError if it is not UTF-8.
    """
    with path.open("rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content.decode("utf-8")


def as_markdown(text: str) -> str:
    """Return text in which no character has a meaning in a Markdown table."""
    plain = " ".join(text.split())
    return "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in plain)
