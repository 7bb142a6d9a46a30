"""Splits a statement of a claim into words and signs, each with its column. Does not interpret them."""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>'[^']*')|(?P<word>\d+(?:\.\d+)?[A-Za-z]*/s|(?:[\w+*?%:-]|\.(?!\.))+)"
    r"|(?P<sign>\.\.|>=|<=|!=|[><=~/,\[\]]))"
)
_FIGURE = re.compile(r"(\d+(?:\.\d+)?)(%|[A-Za-zµ]+(?:/s)?)?")

# Each stack of a group is compared with each of the next group. Without a limit, a page of names would take hours.
MOST_TOKENS = 200


class Misread(Exception):  # noqa: N818 - a mistake of the study, made into a StudyError with all others
    """A mistake in a statement: what is wrong, and at which column."""

    def __init__(self, what: str, column: int) -> None:
        super().__init__(what)
        self.what = what
        self.column = column


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A word, a quoted name or a sign. ``plain``: not quoted, so that it may be a keyword."""

    text: str
    column: int
    plain: bool = True

    @property
    def is_figure(self) -> bool:
        """Whether this is a number, with or without a unit."""
        return _FIGURE.fullmatch(self.text) is not None

    @property
    def is_name(self) -> bool:
        """Whether this may be a name, which does not begin with a sign."""
        return re.match(r"[\w*?]", self.text) is not None


def parted(figure: str) -> tuple[float, str]:
    """Return the number and the unit of the text of a figure. Raises ValueError for other text."""
    match = _FIGURE.fullmatch(figure)
    if match is None:
        raise ValueError(f"'{figure}' is not a figure")
    return float(match[1]), match[2] or ""


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of ``text``. Raises Misread at the first character that is not part of a token."""
    found, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            column = position + len(text[position:]) - len(text[position:].lstrip()) + 1
            raise Misread(f"'{text[column - 1]}' is not allowed here", column)
        quoted = match["quoted"]
        word = quoted[1:-1] if quoted else match["word"] or match["sign"]
        start = match.start("quoted" if quoted else "word" if match["word"] else "sign")
        found.append(Token(text=word, column=start + 1, plain=not quoted))
        position = match.end()
        if len(found) > MOST_TOKENS:
            raise Misread(
                f"longer than {MOST_TOKENS} words and signs: write several statements", found[-1].column
            )
    return found
