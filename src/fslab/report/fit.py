"""Shortens sentences to the lines that a terminal has room for: clauses first, words where that is not enough. Pure."""

import re
import textwrap
from collections.abc import Sequence

INDENT = "  "
_CLAUSE = re.compile(r"(?:, or|, so that|[,;:])(?= )")


def lines_of(text: str, width: int) -> list[str]:
    """Text in lines of at most that width, the later ones indented."""
    return textwrap.wrap(
        text, width, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )


def with_hint(what: str, hint: str | None, width: int, *, most: int = 2) -> str:
    """``what → hint`` on one line with as many of the hint's clauses as fit, else on at most ``most`` lines."""
    told = [f"{what} → {clauses}" for clauses in _shorter(hint)] if hint else []
    return _first(told, width, most) or fitted(what, width, most=most)


def fitted(text: str, width: int, *, most: int = 2, before: str = "") -> str:
    """As many clauses as fit on one line, else on ``most``; where not even one does, as many words.

    ``before`` says what the text is about, and is never shortened to stand alone.
    """
    if found := _first([before + clauses for clauses in _shorter(text)], width, most):
        return found
    words = (before + text).split()
    while len(words) > 1 and len(lines_of(" ".join(words) + " …", width)) > most:
        words.pop()
    return f"{' '.join(words)} …"


def _first(candidates: Sequence[str], width: int, most: int) -> str | None:
    """The first that needs the fewest lines, if these are no more than ``most``."""
    for allowed in range(1, most + 1):
        for each in candidates:
            if len(lines_of(each, width)) <= allowed:
                return each
    return None


def _shorter(text: str) -> list[str]:
    """The text, then without its last clause, and so on down to its first clause."""
    ends = [match.start() for match in _CLAUSE.finditer(text) if _is_closed(text[: match.start()])]
    return [text, *(text[:end] for end in reversed(ends))]


def _is_closed(text: str) -> bool:
    return text.count("(") <= text.count(")")
