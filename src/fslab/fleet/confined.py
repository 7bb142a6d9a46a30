"""The directory in which an agent's measuring process has its request and its log, and what that process said last."""

import contextlib
import tempfile
from pathlib import Path

from fslab.system import files, paths, trees

TAIL_BYTES = 8192


def place(name: str) -> Path:
    """Create and return a directory for a program (mode 0700), named ``NAME-`` and eight random characters.

    Removes leftover directories of the same name as far as possible: what is in them is not trusted, and not followed.
    """
    files.own_directory(paths.fleet(), 0o700)
    for left in paths.fleet().glob(f"{name}-????????"):
        with contextlib.suppress(OSError):
            trees.remove(left)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=paths.fleet()))


def last_line(said: bytes) -> str:
    """Return the last non-empty line of a text, at most 500 characters."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:500] if lines else ""
