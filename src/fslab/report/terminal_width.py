"""Fits texts into a terminal: wraps them, and shortens sentences by clauses and words. Pure."""

import re
import textwrap
from collections.abc import Sequence

from rich.text import Text

from fslab.units import counted

INDENT = 2
NARROWEST = 20

_CLAUSE = re.compile(
    r"(?:, or|, so that|[;:])(?= )"
)  # not a comma: what follows "; without it," is not a statement
STATEMENT = 4  # words; fewer before a colon, such as "unsupported: fill", only say what the rest is about


def lines_of(text: str, width: int, hang: int | None = None) -> list[str]:
    """Wrap a text to ``width`` columns. All lines but the first are indented by ``hang``, or further than the first."""
    indent = " " * (len(text) - len(text.lstrip(" ")) + INDENT if hang is None else hang)
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def wrapped(text: str, width: int, *, style: str = "", hang: int | None = None) -> Text:
    return Text("\n".join(lines_of(text, max(width, NARROWEST), hang)), style=style)


def with_hint(what: str, hint: str | None, width: int, *, most: int = 2) -> str:
    """Return ``what → hint``, with as many clauses of the hint as fit on ``most`` lines.

    If not even one clause fits on ``most`` lines, the hint is omitted.
    """
    what, hint = _that_may_fit(what, width, most), _that_may_fit(hint or "", width, most)
    told = [f"{what} → {clauses}" for clauses in _shorter(hint)] if hint else []
    return _first(told, width, most) or fitted(what, width, most=most)


def fitted(text: str, width: int, *, most: int = 2) -> str:
    """Return a text, with as many clauses as fit on ``most`` lines.

    If not even one clause fits on ``most`` lines, as many words as fit.
    """
    text = _that_may_fit(text, width, most)
    if found := _first(_shorter(text), width, most):
        return found
    words = text.split()
    while len(words) > 1 and len(lines_of(" ".join(words) + " …", width)) > most:
        words.pop()
    return f"{' '.join(words)} …"


def joined(texts: Sequence[str], width: int, *, what: str, before: str = "", most: int = 2) -> str:
    """Return as many of the texts as fit on ``most`` lines, and how many more there are; of the first at least its
    beginning. ``what``: what one of those left out is."""
    for shown in range(len(texts), 0, -1):
        left = [counted(len(texts) - shown, what)] if shown < len(texts) else []
        told = _that_may_fit(before + "; ".join([*texts[:shown], *left]), width, most)
        if len(lines_of(told, width)) <= most:
            return told
    first = before + "".join(texts[:1])
    others = f"; {counted(len(texts) - 1, what)}" if len(texts) > 1 else ""
    ends = [each + others for each in _shorter(_that_may_fit(first, width, most))]
    return _first(ends, width, most) or fitted(first, width, most=most)


def _that_may_fit(text: str, width: int, most: int) -> str:
    """Return the beginning of a text, longer than what fits on ``most`` lines: a stored text can have megabytes."""
    return text[: (most + 2) * width]


def _first(candidates: Sequence[str], width: int, most: int) -> str | None:
    """Return the first candidate that fits on ``most`` lines; None if all need more."""
    return next((each for each in candidates if len(lines_of(each, width)) <= most), None)


def _shorter(text: str) -> list[str]:
    """Return the text, then the text without its last clause, and so on, down to its first clause."""
    found = ((text[: match.start()], match[0]) for match in _CLAUSE.finditer(text))
    before = [each for each, end in found if end != ":" or len(each.split()) >= STATEMENT]
    return [text, *(each for each in reversed(before) if each.count("(") <= each.count(")"))]
