"""Names that become paths, process environments, locks and file names: checked wherever they are read.

A store, an export, a journal's directory or a guest may be anybody's. Touches nothing.
"""

import hashlib
import re
from typing import Annotated

from pydantic import AfterValidator

# One component of a path that is neither hidden nor an option, and short enough for a file name around it.
_ONE_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
_NOT_IN_A_FILE_NAME = re.compile(r"[/\x00-\x1f\x7f\\\ud800-\udfff]|^[.-]")
# The last ones turn the direction of what follows: a command could be shown as another one.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LONGEST_FILE_NAME = 160  # bytes; with an extension well below the 255 of most file systems


def is_word(name: str) -> bool:
    """Whether a name may stand in a path as it is."""
    return _ONE_WORD.fullmatch(name) is not None


def word(name: str) -> str:
    """The name; ValueError if it may not stand in a path."""
    if not is_word(name):
        raise ValueError(
            f"{name[:200]!r} is not a valid name: use 1 to 128 letters, digits, '.', '_', '+' and '-'"
        )
    return name


def short_word(name: str) -> str:
    """The name, or where it is too long its beginning and a digest of the whole."""
    return name if len(name) <= 128 else f"{name[:100]}.{_digest(name)}"


def file_name(text: str) -> str:
    """A file's name made of any text: the text itself where it can be one, else what is left and a digest of all."""
    safe = (_NOT_IN_A_FILE_NAME.sub("_", text) or "_").encode("utf-8", "replace")
    if safe == text.encode("utf-8", "replace") and len(safe) <= LONGEST_FILE_NAME:
        return text
    return f"{safe[: LONGEST_FILE_NAME - 13].decode('utf-8', 'ignore')}-{_digest(text)}"


def shown(text: str) -> str:
    """The text with blanks for what a terminal obeys instead of showing it: control characters but tab and new line."""
    return _CONTROL.sub(" ", text)


def obeyed(text: str) -> str | None:
    """The first character that a terminal obeys instead of showing it, as ``U+001B``; None if there is none."""
    found = _CONTROL.search(text)
    return found and f"U+{ord(found[0]):04X}"


def local_path(path: str) -> str:
    """The path; ValueError if it is longer than Linux takes (path_resolution(7)): 4095 bytes, 255 each component."""
    encoded = path.encode("utf-8", "surrogatepass")
    if len(encoded) > 4095 or max(map(len, encoded.split(b"/"))) > 255:
        raise ValueError("is too long for a path: at most 4095 bytes, and 255 bytes per component")
    return path


def escaped(document: str) -> str:
    """A JSON document with the same characters as ``\\u009b``: it says the same, and a terminal obeys nothing in it."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


LocalPath = Annotated[str, AfterValidator(local_path)]
Shown = Annotated[str, AfterValidator(shown)]
Word = Annotated[str, AfterValidator(word)]
