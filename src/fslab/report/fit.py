"""Shortens sentences to the lines that a terminal has room for. Removes clauses first, and then words. Pure."""

import re
import textwrap
from collections.abc import Sequence

from rich.text import Text

INDENT = "  "
_CLAUSE = re.compile(
    r"(?:, or|, so that|[;:])(?= )"
)  # not a comma: what follows "; without it," is not a statement


def lines_of(text: str, width: int) -> list[str]:
    """Wrap a text to ``width`` columns. All lines but the first are indented."""
    return textwrap.wrap(
        text, width, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )


def wrapped(text: str, width: int, *, style: str = "") -> Text:
    return Text("\n".join(lines_of(text, width)), style=style)


def with_hint(what: str, hint: str | None, width: int, *, most: int = 2) -> str:
    """Return ``what → hint`` on as few lines as possible, with as many clauses of the hint as fit there.

    If not even one clause fits on ``most`` lines, the hint is omitted.
    """
    what, hint = _that_may_fit(what, width, most), _that_may_fit(hint or "", width, most)
    told = [f"{what} → {clauses}" for clauses in _shorter(hint)] if hint else []
    return _first(told, width, most) or fitted(what, width, most=most)


def fitted(text: str, width: int, *, most: int = 2) -> str:
    """Return a text on as few lines as possible, with as many clauses as fit there.

    If not even one clause fits on ``most`` lines, as many words as fit.
    """
    text = _that_may_fit(text, width, most)
    if found := _first(_shorter(text), width, most):
        return found
    words = text.split()
    while len(words) > 1 and len(lines_of(" ".join(words) + " …", width)) > most:
        words.pop()
    return f"{' '.join(words)} …"


def _that_may_fit(text: str, width: int, most: int) -> str:
    """Return the beginning of a text, longer than what fits on ``most`` lines: a stored text can have megabytes."""
    return text[: (most + 2) * width]


def _first(candidates: Sequence[str], width: int, most: int) -> str | None:
    """Return the first candidate with the fewest lines; None if all need more than ``most`` lines."""
    for allowed in range(1, most + 1):
        for each in candidates:
            if len(lines_of(each, width)) <= allowed:
                return each
    return None


def _shorter(text: str) -> list[str]:
    """Return the text, then the text without its last clause, and so on, down to its first clause."""
    ends = [match.start() for match in _CLAUSE.finditer(text) if _is_closed(text[: match.start()])]
    return [text, *(text[:end] for end in reversed(ends))]


def _is_closed(text: str) -> bool:
    return text.count("(") <= text.count(")")
