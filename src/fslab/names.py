"""Checks names that become paths, process environments, locks and file names, wherever they are read.

A store, an export, a journal's directory or a guest may be untrusted. This module has no side effects.
"""

import hashlib
import re
import unicodedata
from pathlib import PurePath
from typing import Annotated

from pydantic import AfterValidator

# One component of a path: not hidden, not an option, and short enough to be part of a longer file name.
_ONE_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
_NOT_IN_A_FILE_NAME = re.compile(r"[/\x00-\x1f\x7f\\\ud800-\udfff]|^[.-]")
# The last ones change the direction of the text that follows: a command could look like another one.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_GAP = re.compile(" {20,}")
# Letters and symbols that look like a blank, or that a terminal joins with the one before (Hangul, UAX #11).
_UNSEEN = re.compile("[\u115f-\u11ff\u2800\u3164\ud7b0-\ud7ff\uffa0\ufffc\U0001d159\U0001f3fb-\U0001f3ff]")
# Classes of UAX #9. A terminal can exchange such words, and what is between them.
_TO_THE_LEFT = frozenset({"R", "AL", "AN"})
LONGEST_FILE_NAME = 160  # bytes; with an extension well below the 255 of most file systems


def is_word(name: str) -> bool:
    """Return whether a name is safe as a component of a path."""
    return _ONE_WORD.fullmatch(name) is not None


def word(name: str) -> str:
    """Return the name. Raises ValueError if it is not safe as a component of a path."""
    if not is_word(name):
        raise ValueError(
            f"{name[:200]!r} is not a valid name: use 1 to 128 of A-Z, a-z, 0-9, '.', '_', '+' and '-', "
            "and begin with a letter or digit"
        )
    return name


def short_word(name: str) -> str:
    """Return the name; if it has more than 128 characters, its beginning and a digest of the whole name."""
    return name if len(name) <= 128 else f"{name[:100]}.{_digest(name)}"


def study_id(written: str | PurePath) -> str:
    """Return the id of a study, given its id or file. Other suffixes than YAML's are part of it: ``sweep-1.5``."""
    path = PurePath(written)
    return path.stem if path.suffix in {".yaml", ".yml"} else path.name


def file_name(text: str) -> str:
    """Return a file name for any text: the text itself if it is valid, else its valid characters and a digest."""
    safe = (_NOT_IN_A_FILE_NAME.sub("_", text) or "_").encode("utf-8", "replace")
    if safe == text.encode("utf-8", "replace") and len(safe) <= LONGEST_FILE_NAME:
        return text
    return f"{safe[: LONGEST_FILE_NAME - 13].decode('utf-8', 'ignore')}-{_digest(text)}"


def shown(text: str) -> str:
    """Return the text with blanks for characters that a terminal obeys: control characters except tab and newline."""
    return _CONTROL.sub(" ", text)


def visible(text: str) -> str:
    """Return the text with an escape for each character that cannot be seen, that hides or moves others, or that a
    terminal obeys, and with the number of blanks in place of a long gap: what is shown for consent is what is executed.
    """
    seen = "".join(each if _is_visible(each) else each.encode("unicode_escape").decode() for each in text)
    return _GAP.sub(lambda found: f" [{len(found[0])} blanks] ", seen)


def columns_of(character: str) -> int:
    """Return how many columns a visible character takes at most on a terminal. For those of ambiguous width, that is
    the terminal's choice (UAX #11)."""
    return 2 if unicodedata.east_asian_width(character) in "WFA" else 1


def _is_visible(character: str) -> bool:
    return character == " " or (
        unicodedata.category(character)[0] in "LNPS"
        and not _UNSEEN.match(character)
        and unicodedata.bidirectional(character) not in _TO_THE_LEFT
    )


def obeyed(text: str) -> str | None:
    """Return the first character that a terminal would obey, such as ``U+001B``; None if there is none."""
    found = _CONTROL.search(text)
    return found and f"U+{ord(found[0]):04X}"


def local_path(path: str) -> str:
    """Return the path. Raises ValueError if it is empty, or too long for Linux (path_resolution(7)): more than 4095
    bytes, or more than 255 bytes in a component."""
    if not path:
        raise ValueError("is empty: write '.' for the current directory")
    encoded = path.encode("utf-8", "surrogatepass")
    if len(encoded) > 4095 or max(map(len, encoded.split(b"/"))) > 255:
        raise ValueError("is too long for a path: at most 4095 bytes, and 255 bytes per component")
    return path


def escaped(document: str) -> str:
    """Return an equal JSON document with control characters as ``\\u009b``, so that a terminal obeys none of them."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


LocalPath = Annotated[str, AfterValidator(local_path)]
Shown = Annotated[str, AfterValidator(shown)]
Word = Annotated[str, AfterValidator(word)]
